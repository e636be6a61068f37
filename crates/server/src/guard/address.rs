//! Whether a `Host` header means this server.

use std::net::{IpAddr, SocketAddr};

use crate::config::is_loopback_host;

/// Whether a request with this `Host` header was meant for the server that it reached at `local`.
///
/// Names are compared with a list, because a name can be made to point anywhere. A numeric address is ours if the
/// request came in over it, or over loopback.
pub(crate) fn is_host_allowed(header: &str, local: SocketAddr, listed: &[String]) -> bool {
    let Some(host) = without_port(header) else {
        return false;
    };
    if listed.iter().any(|name| name.trim_matches(['[', ']']).eq_ignore_ascii_case(host)) {
        return true;
    }
    match host.parse::<IpAddr>() {
        Ok(ip) => {
            let (ip, local) = (ip.to_canonical(), local.ip().to_canonical());
            ip == local || (ip.is_loopback() && local.is_loopback())
        }
        Err(_) => is_loopback_host(host) && local.ip().to_canonical().is_loopback(),
    }
}

/// The host of `host`, `host:port`, `[v6]` or `[v6]:port`.
fn without_port(header: &str) -> Option<&str> {
    if let Some(rest) = header.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_number);
        return (is_port && host.parse::<IpAddr>().is_ok()).then_some(host);
    }
    let (host, port) = header.split_once(':').unwrap_or((header, "0"));
    (!host.is_empty() && is_number(port)).then_some(host)
}

fn is_number(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_and_addresses_are_ours() {
        let listed = ["bough.example".to_owned(), "[fd00::1]".to_owned()];
        let check = |header: &str, local: &str, expected: bool| {
            let local = local.parse().unwrap();
            assert_eq!(is_host_allowed(header, local, &listed), expected, "{header} at {local}");
        };
        let loopback = "127.0.0.1:7717";
        for ours in ["127.0.0.1:7717", "127.0.0.1", "localhost:7717", "LOCALHOST", "[::1]:7717"] {
            check(ours, loopback, true);
        }
        check("BOUGH.example:443", loopback, true);
        check("[fd00::1]:7717", loopback, true);
        for other in ["evil.example", "evil.example:7717", "127.0.0.1.evil.example", "10.0.0.5", ""]
        {
            check(other, loopback, false);
        }
        for broken in [
            "localhost:",
            "localhost:x",
            "localhost:1:2",
            "[::1",
            "[::1]x",
            "::1",
            "a b",
            "[localhost]",
        ] {
            check(broken, loopback, false);
        }
        check("10.0.0.5:7717", "10.0.0.5:7717", true);
        check("10.0.0.6:7717", "10.0.0.5:7717", false);
        check("localhost", "10.0.0.5:7717", false);
        check("127.0.0.1", "10.0.0.5:7717", false);
        check("10.0.0.5", "[::ffff:10.0.0.5]:7717", true);
    }
}
