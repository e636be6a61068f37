//! Detects requests that a proxy forwarded.

use std::net::IpAddr;

use http::{HeaderMap, Version};

use crate::net::Peer;

/// Headers that a proxy adds.
const NAMES: [&str; 17] = [
    "cf-connecting-ip",
    "do-connecting-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "forwarded",
    "forwarded-for",
    "true-client-ip",
    "via",
    "x-appengine-user-ip",
    "x-azure-clientip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-forwarded",
    "x-original-forwarded-for",
    "x-proxyuser-ip",
    "x-real-ip",
];
/// The prefix of the other headers.
const PREFIX: &str = "x-forwarded-";

/// Whether a proxy that is not among the `trusted` addresses forwarded a request.
///
/// Without tokens, programs on this machine are allowed. A proxy on this machine is one of them, whichever client sends it the
/// request. Some proxies add no header but speak HTTP/1.0, which is the default of nginx; clients speak HTTP/1.1.
pub(super) fn is_passed_on(
    headers: &HeaderMap,
    version: Version,
    peer: Peer,
    trusted: &[IpAddr],
) -> bool {
    let is_added = |name: &str| NAMES.contains(&name) || name.starts_with(PREFIX);
    let is_passed_on =
        version < Version::HTTP_11 || headers.keys().any(|name| is_added(name.as_str()));
    is_passed_on && !trusted.contains(&peer.remote.ip().to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_known_by_its_headers_and_its_version() {
        let peer = Peer::of_local_socket();
        let check = |name: &'static str, version: Version, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(name, "203.0.113.7".parse().unwrap());
            let passed_on = |trusted: &[IpAddr]| is_passed_on(&headers, version, peer, trusted);
            assert_eq!(passed_on(&[]), expected, "{name} {version:?}");
            assert_eq!(passed_on(&["192.0.2.1".parse().unwrap()]), expected, "{name}");
            assert!(!passed_on(&[peer.remote.ip()]), "{name}");
        };
        for name in NAMES.into_iter().chain(["x-forwarded-for", "x-forwarded-proto"]) {
            check(name, Version::HTTP_11, true);
        }
        check("user-agent", Version::HTTP_11, false);
        check("user-agent", Version::HTTP_10, true);
    }
}
