//! Who may come in: the host that was meant, the page that asks, and the token that is shown.
//!
//! Browsers let any page send requests to this machine. A page cannot choose the `Host` header of its requests, nor hide its
//! `Origin`; so both are compared with lists on every request and on every upgrade, before anything else is looked at.

mod address;
mod local_key;
mod token_file;
mod tokens;

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use bough_platform::Clock;
use bough_service::Scope;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST, ORIGIN};

use crate::net::Peer;

use address::is_host_allowed;
pub use local_key::LOCAL_KEY_FILE;
pub(crate) use local_key::LocalKey;
pub use token_file::{TOKENS_FILE, TokenFile};
pub use tokens::{NewToken, TokenError, TokenRecord, TokenText, Tokens};

/// The guard at the door. What it goes by can be replaced while it stands.
#[derive(Debug)]
pub(crate) struct Guard {
    rules: RwLock<Arc<GuardRules>>,
    clock: Arc<dyn Clock>,
}

/// What the guard goes by.
#[derive(Clone, Debug, Default)]
pub(crate) struct GuardRules {
    /// Names in the `Host` header that are ours, beside loopback names and the address that was reached.
    pub(crate) hosts: Vec<String>,
    /// Pages of these origins may call.
    pub(crate) origins: Vec<String>,
    /// The tokens.
    pub(crate) tokens: Tokens,
    /// Whether callers without a token may do everything.
    pub(crate) is_open: bool,
    /// Opens the door to whoever can read our data directory.
    pub(crate) local_key: Option<Arc<LocalKey>>,
}

/// A caller that was let in.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// What it may do.
    pub(crate) scope: Scope,
    /// The token that it showed.
    pub(crate) token_id: Option<String>,
}

/// Why a caller was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the request names no host, or more than one")]
    NoHost,
    #[error("this server is not reached under that host name")]
    Host,
    #[error("pages of that origin may not call this server")]
    Origin,
    #[error("this server asks for a bearer token")]
    TokenNeeded,
    #[error("the bearer token is not one of this server's, or has ended")]
    TokenNotGood,
}

impl Refusal {
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::NoHost | Self::Host => "guard/host_not_allowed",
            Self::Origin => "guard/origin_not_allowed",
            Self::TokenNeeded => "guard/token_needed",
            Self::TokenNotGood => "guard/token_not_valid",
        }
    }

    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::NoHost => 400,
            Self::Host => 421,
            Self::Origin => 403,
            Self::TokenNeeded | Self::TokenNotGood => 401,
        }
    }

    pub(crate) const fn hint(self) -> &'static str {
        match self {
            Self::NoHost => "Send one Host header.",
            Self::Host => "Use the address that the server prints, or add the name to allow.hosts.",
            Self::Origin => "Add the page's origin to allow.origins.",
            Self::TokenNeeded | Self::TokenNotGood => {
                "Make one with `bough token create` and send it as `Authorization: Bearer <token>`."
            }
        }
    }
}

impl Guard {
    pub(crate) fn new(rules: GuardRules, clock: Arc<dyn Clock>) -> Self {
        Self { rules: RwLock::new(Arc::new(rules)), clock }
    }

    pub(crate) fn rules(&self) -> Arc<GuardRules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace(&self, rules: GuardRules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// Compares host and origin with the lists.
    pub(crate) fn check_door(&self, headers: &HeaderMap, local: SocketAddr) -> Result<(), Refusal> {
        let rules = self.rules();
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Refusal::NoHost);
        };
        let host = host.to_str().map_err(|_| Refusal::NoHost)?;
        if !is_host_allowed(host, local, &rules.hosts) {
            return Err(Refusal::Host);
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(()),
            (Some(origin), None)
                if rules.allows_origin(origin.to_str().unwrap_or_default(), host) =>
            {
                Ok(())
            }
            _ => Err(Refusal::Origin),
        }
    }

    /// Finds out who calls.
    pub(crate) fn identify(&self, headers: &HeaderMap, peer: Peer) -> Result<Caller, Refusal> {
        let rules = self.rules();
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        match (shown.next(), shown.next()) {
            (None, _) if rules.is_open => Ok(Caller { scope: Scope::owner(), token_id: None }),
            (None, _) => Err(Refusal::TokenNeeded),
            // Nothing was ever given out here, so there is nothing to compare with.
            (Some(_), None) if rules.is_open => {
                Ok(Caller { scope: Scope::owner(), token_id: None })
            }
            (Some(value), None) => {
                let text = value.to_str().ok().and_then(bearer_text);
                let opens =
                    |text: &str| rules.local_key.as_ref().is_some_and(|key| key.opens(text, peer));
                if text.is_some_and(opens) {
                    let token_id = Some(local_key::LOCAL_KEY_ID.to_owned());
                    return Ok(Caller { scope: Scope::owner(), token_id });
                }
                let scope = text.and_then(|text| rules.tokens.bearer(text, self.clock.now_ms()));
                let scope = scope.ok_or(Refusal::TokenNotGood)?;
                Ok(Caller { token_id: Some(scope.who().to_owned()), scope })
            }
            _ => Err(Refusal::TokenNotGood),
        }
    }

    /// Whether a caller that was let in may stay: its token may have ended, or been taken back.
    pub(crate) fn may_stay(&self, caller: &Caller) -> bool {
        let rules = self.rules();
        match &caller.token_id {
            Some(id) if id == local_key::LOCAL_KEY_ID => true,
            Some(id) => rules.tokens.is_still_good(id, self.clock.now_ms()),
            None => rules.is_open,
        }
    }
}

impl GuardRules {
    /// Whether pages of an origin may call: those that are listed, and those that this server itself shows.
    pub(crate) fn allows_origin(&self, origin: &str, host: &str) -> bool {
        let is_own =
            origin.strip_prefix("http://").is_some_and(|rest| rest.eq_ignore_ascii_case(host));
        is_own || self.origins.iter().any(|listed| listed.eq_ignore_ascii_case(origin))
    }
}

fn bearer_text(value: &str) -> Option<&str> {
    let (scheme, text) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| text.trim())
}

#[cfg(test)]
mod tests {
    use bough_platform::SystemClock;

    use super::*;

    fn guard(rules: GuardRules) -> Guard {
        Guard::new(rules, Arc::new(SystemClock::new()))
    }

    fn peer() -> Peer {
        let address = "127.0.0.1:1".parse().unwrap();
        Peer { local: address, remote: address }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn host_and_origin_are_both_compared() {
        let rules = GuardRules {
            hosts: vec!["bough.example".into()],
            origins: vec!["https://console.example".into()],
            ..GuardRules::default()
        };
        let guard = guard(rules);
        let local = "127.0.0.1:7717".parse().unwrap();
        let check = |pairs: &[(&'static str, &str)], expected: Result<(), Refusal>| {
            assert_eq!(guard.check_door(&headers(pairs), local), expected, "{pairs:?}");
        };
        let here = ("host", "127.0.0.1:7717");
        check(&[here], Ok(()));
        check(&[("host", "bough.example")], Ok(()));
        check(&[], Err(Refusal::NoHost));
        check(&[here, here], Err(Refusal::NoHost));
        check(&[("host", "evil.example:7717")], Err(Refusal::Host));
        check(&[here, ("origin", "http://127.0.0.1:7717")], Ok(()));
        check(&[here, ("origin", "https://console.example")], Ok(()));
        check(&[here, ("origin", "http://127.0.0.1:3000")], Err(Refusal::Origin));
        check(&[here, ("origin", "http://localhost:7717")], Err(Refusal::Origin));
        check(&[here, ("origin", "https://127.0.0.1:7717")], Err(Refusal::Origin));
        check(&[here, ("origin", "null")], Err(Refusal::Origin));
        check(&[here, ("origin", "https://console.example.evil")], Err(Refusal::Origin));
        let twice = ("origin", "https://console.example");
        check(&[here, twice, twice], Err(Refusal::Origin));
    }

    #[test]
    fn without_tokens_the_door_is_open_or_shut() {
        let open = guard(GuardRules { is_open: true, ..GuardRules::default() });
        let caller = open.identify(&HeaderMap::new(), peer()).unwrap();
        assert!(open.may_stay(&caller));
        let anything = headers(&[("authorization", "Bearer x")]);
        assert!(
            open.identify(&anything, peer()).is_ok(),
            "a client may carry a token for another place"
        );
        open.replace(GuardRules::default());
        assert!(!open.may_stay(&caller), "a door that closes sends out who came in before");
        assert_eq!(open.identify(&HeaderMap::new(), peer()).unwrap_err(), Refusal::TokenNeeded);
        for bad in ["Bearer x", "Basic eDp5", "bough_a_b", "Bearer"] {
            let refused = open.identify(&headers(&[("authorization", bad)]), peer()).unwrap_err();
            assert_eq!(refused, Refusal::TokenNotGood, "{bad}");
        }
    }
}
