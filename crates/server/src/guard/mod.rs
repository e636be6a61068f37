//! Access control: the host that a request names, the origin of the page that sends it, and its token.
//!
//! Browsers let any page send requests to this machine. A page cannot choose the `Host` header of its requests, nor
//! hide its `Origin`. So both are compared with lists on every request and on every upgrade, before anything else.

mod address;
mod forwarded;
mod layer;
mod local_key;
mod passes;
mod secret;
mod token_file;
mod tokens;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use bough_platform::{Clock, Entropy};
use bough_service::Scope;
use http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, Method};

use crate::api::Problem;
use crate::net::{Peer, PeerKind};

use address::is_host_allowed;
use forwarded::is_passed_on;
pub(crate) use layer::with_guard;
pub use local_key::LOCAL_KEY_FILE;
pub(crate) use local_key::LocalKey;
pub(crate) use passes::{NewPass, PassError, PassKind};
pub use token_file::{TOKENS_FILE, TokenFile};
pub use tokens::{NewToken, TokenError, TokenRecord, TokenText, Tokens};

use passes::Passes;

/// The caller id of the local key in the log.
const LOCAL_KEY_ID: &str = "local-key";
/// The caller id of the Unix socket in the log.
const LOCAL_SOCKET_ID: &str = "local-socket";

/// The guard in front of every router. Its rules can be replaced while the server runs.
#[derive(Debug)]
pub(crate) struct Guard {
    rules: RwLock<Arc<GuardRules>>,
    passes: Passes,
    clock: Arc<dyn Clock>,
}

/// The rules of the guard.
#[derive(Clone, Debug, Default)]
pub(crate) struct GuardRules {
    /// Names in the `Host` header that are ours, beside loopback names and the address that was reached.
    pub(crate) hosts: Vec<String>,
    /// Pages of these origins may call.
    pub(crate) origins: Vec<String>,
    /// Proxies that may forward requests while no token is required.
    pub(crate) proxies: Vec<IpAddr>,
    /// The tokens.
    pub(crate) tokens: Tokens,
    /// Whether callers without a token may do everything.
    pub(crate) is_open: bool,
    /// Gives access to programs that can read our data directory.
    pub(crate) local_key: Option<Arc<LocalKey>>,
}

/// A caller that was let in.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Its rights.
    pub(crate) scope: Scope,
    /// The id of its token, or of what identifies it otherwise; `None` on a server without tokens.
    pub(crate) id: Option<String>,
}

/// A row for each refusal: its status, its code, what happened, and the next step.
macro_rules! refusals {
    ($($name:ident $status:literal $code:literal $detail:tt $hint:literal;)*) => {
        /// Why a caller was not let in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
        pub(crate) enum Refusal {
            $(#[error($detail)] $name,)*
        }

        impl Refusal {
            /// Every one.
            #[cfg(test)]
            pub(crate) const ALL: [Self; [$($status),*].len()] = [$(Self::$name),*];

            /// Code, status and next step.
            const fn facts(self) -> (&'static str, u16, &'static str) {
                match self { $(Self::$name => ($code, $status, $hint),)* }
            }
        }
    };
}

refusals! {
    NoHost 400 "guard/host_not_allowed" "the request names no host, or more than one" "Send one Host header.";
    Host 421 "guard/host_not_allowed" "this server is not reached under that host name"
        "Use the address that the server prints, or add the name to allow.hosts.";
    Origin 403 "guard/origin_not_allowed" "pages of that origin may not call this server"
        "Add the page's origin to allow.origins.";
    TokenNeeded 401 "guard/token_needed" "this server asks for a bearer token"
        "Make one with `bough token create` and send it as `Authorization: Bearer <token>`.";
    TokenNotGood 401 "guard/token_not_valid" "the bearer token is not one of this server's, or has ended"
        "Make one with `bough token create` and send it as `Authorization: Bearer <token>`.";
    TicketNotGood 401 "guard/ticket_not_valid" "the ticket is not one of this server's, was used before, or has ended"
        "Ask for a new one with `POST /v1/tickets`; each opens one stream.";
    PassedOn 403 "guard/proxy_not_trusted" "a proxy forwarded the request, and this server does not require tokens"
        "Make a token with `bough token create`, or add the proxy's address to allow.proxies if every client of the proxy may do everything.";
    OriginNeeded 403 "guard/origin_needed" "a request that changes something and is let in by a cookie must name its origin"
        "Send an Origin header, as browsers do, or a bearer token.";
}

impl Refusal {
    pub(crate) const fn code(self) -> &'static str {
        self.facts().0
    }

    pub(crate) const fn status(self) -> u16 {
        self.facts().1
    }

    pub(crate) const fn hint(self) -> &'static str {
        self.facts().2
    }
}

impl Guard {
    pub(crate) fn new(rules: GuardRules, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self { rules: RwLock::new(Arc::new(rules)), passes: Passes::new(entropy), clock }
    }

    pub(crate) fn rules(&self) -> Arc<GuardRules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace(&self, rules: GuardRules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// Compares host and origin with the lists.
    pub(crate) fn check_host_and_origin(
        &self,
        headers: &HeaderMap,
        local: SocketAddr,
    ) -> Result<(), Refusal> {
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

    /// Identifies the caller: by a bearer token, by a ticket, by the cookie of a login, or by the connection.
    pub(crate) fn identify(
        &self,
        request: &Parts,
        peer: Peer,
        ticket: Option<&str>,
    ) -> Result<Caller, Refusal> {
        let rules = self.rules();
        let headers = &request.headers;
        let is_trusted_place = rules.is_open || peer.kind == PeerKind::LocalSocket;
        if is_trusted_place && is_passed_on(headers, request.version, peer, &rules.proxies) {
            return Err(Refusal::PassedOn);
        }
        if peer.kind == PeerKind::LocalSocket {
            return Ok(Caller::owner(Some(LOCAL_SOCKET_ID)));
        }
        // Nothing was ever issued here, so there is nothing to compare with.
        if rules.is_open {
            return Ok(Caller::owner(None));
        }
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        match (shown.next(), shown.next()) {
            (Some(value), None) => {
                let text = value.to_str().ok().and_then(bearer_text);
                text.and_then(|text| self.bearer(text, peer)).ok_or(Refusal::TokenNotGood)
            }
            (Some(_), Some(_)) => Err(Refusal::TokenNotGood),
            (None, _) => match ticket {
                Some(text) => self.by_pass(PassKind::Ticket, text).ok_or(Refusal::TicketNotGood),
                None => self.by_cookie(request, peer),
            },
        }
    }

    fn bearer(&self, text: &str, peer: Peer) -> Option<Caller> {
        let rules = self.rules();
        if rules.local_key.as_ref().is_some_and(|key| key.opens(text, peer)) {
            return Some(Caller::owner(Some(LOCAL_KEY_ID)));
        }
        let scope = rules.tokens.bearer(text, self.clock.now_ms())?;
        Some(Caller { id: Some(scope.who().to_owned()), scope })
    }

    /// Identifies a caller by its cookie. Pages of other origins cannot use it: browsers keep it from other sites,
    /// report where a request comes from, and name the origin of everything that changes something.
    fn by_cookie(&self, request: &Parts, peer: Peer) -> Result<Caller, Refusal> {
        let headers = &request.headers;
        let is_same_origin = headers
            .get("sec-fetch-site")
            .is_none_or(|site| matches!(site.as_bytes(), b"same-origin" | b"none"));
        let text = login_cookie(headers, peer).filter(|_| is_same_origin);
        let caller = text.and_then(|text| self.by_pass(PassKind::Login, text));
        let caller = caller.ok_or(Refusal::TokenNeeded)?;
        let changes_nothing = matches!(request.method, Method::GET | Method::HEAD);
        if !changes_nothing && !headers.contains_key(ORIGIN) {
            return Err(Refusal::OriginNeeded);
        }
        Ok(caller)
    }

    fn by_pass(&self, kind: PassKind, text: &str) -> Option<Caller> {
        let id = self.passes.caller_id(kind, text, self.clock.now_ms())?;
        let scope = self.scope_of(id.as_deref())?;
        Some(Caller { scope, id })
    }

    /// The current scope of an accepted caller: its token may have expired or been revoked.
    fn scope_of(&self, caller_id: Option<&str>) -> Option<Scope> {
        let rules = self.rules();
        match caller_id {
            Some(LOCAL_KEY_ID | LOCAL_SOCKET_ID) => Some(Scope::owner()),
            Some(id) => rules.tokens.scope_of(id, self.clock.now_ms()),
            None => rules.is_open.then(Scope::owner),
        }
    }

    /// Whether an accepted caller still has access.
    pub(crate) fn may_stay(&self, caller: &Caller) -> bool {
        self.scope_of(caller.id.as_deref()).is_some()
    }

    /// Issues a pass that stands for a caller's token.
    pub(crate) fn issue_pass(&self, kind: PassKind, caller: &Caller) -> Result<NewPass, PassError> {
        self.passes.issue(kind, caller.id.as_deref(), self.clock.now_ms())
    }

    /// Ends the login whose cookie a request has.
    pub(crate) fn log_out(&self, headers: &HeaderMap, peer: Peer) {
        if let Some(text) = login_cookie(headers, peer) {
            self.passes.remove(text);
        }
    }
}

impl Caller {
    /// The caller of a request that passed the guard.
    pub(crate) fn of(request: &Parts) -> Result<Self, Problem> {
        request.extensions.get().cloned().ok_or_else(Problem::internal)
    }

    fn owner(id: Option<&str>) -> Self {
        Self { scope: Scope::owner(), id: id.map(str::to_owned) }
    }
}

/// The name of the cookie of a login. Browsers share cookies between all ports of a host, so the port is part of it.
pub(crate) fn login_cookie_name(peer: Peer) -> String {
    format!("bough_login_{}", peer.local.port())
}

fn login_cookie(headers: &HeaderMap, peer: Peer) -> Option<&str> {
    let name = login_cookie_name(peer);
    let lines = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(known, _)| known.trim() == name).map(|(_, value)| value.trim())
}

impl GuardRules {
    /// Whether pages of an origin may call: listed ones, and those of this server itself.
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
        Guard::new(rules, Arc::new(SystemClock::new()), Arc::new(bough_platform::OsEntropy))
    }

    fn peer() -> Peer {
        let address = "127.0.0.1:1".parse().unwrap();
        Peer { local: address, remote: address, kind: PeerKind::Tcp }
    }

    fn request(method: Method, pairs: &[(&'static str, &str)]) -> Parts {
        let mut parts = http::Request::builder().method(method).body(()).unwrap().into_parts().0;
        parts.headers = headers(pairs);
        parts
    }

    fn identify(guard: &Guard, pairs: &[(&'static str, &str)]) -> Result<Caller, Refusal> {
        guard.identify(&request(Method::GET, pairs), peer(), None)
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
            assert_eq!(guard.check_host_and_origin(&headers(pairs), local), expected, "{pairs:?}");
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
        let caller = identify(&open, &[]).unwrap();
        assert!(open.may_stay(&caller));
        let anything = [("authorization", "Bearer x")];
        assert!(
            identify(&open, &anything).is_ok(),
            "a client may carry a token for another server"
        );
        open.replace(GuardRules::default());
        assert!(
            !open.may_stay(&caller),
            "callers without a token must leave once tokens are in use"
        );
        assert_eq!(identify(&open, &[]).unwrap_err(), Refusal::TokenNeeded);
        for bad in ["Bearer x", "Basic eDp5", "bough_a_b", "Bearer"] {
            let refused = identify(&open, &[("authorization", bad)]).unwrap_err();
            assert_eq!(refused, Refusal::TokenNotGood, "{bad}");
        }
    }

    #[test]
    fn where_everybody_is_let_in_a_proxy_is_not() {
        let open = guard(GuardRules { is_open: true, ..GuardRules::default() });
        let passed_on = [("x-forwarded-for", "203.0.113.7")];
        assert_eq!(identify(&open, &passed_on).unwrap_err(), Refusal::PassedOn);
        let proxies = vec!["127.0.0.1".parse().unwrap()];
        open.replace(GuardRules { is_open: true, proxies, ..GuardRules::default() });
        assert!(identify(&open, &passed_on).is_ok());
    }

    #[test]
    fn a_local_socket_needs_no_token_and_takes_nothing_from_a_proxy() {
        let shut = guard(GuardRules::default());
        let on_socket = |pairs: &[(&'static str, &str)]| {
            shut.identify(&request(Method::POST, pairs), Peer::of_local_socket(), None)
        };
        let caller = on_socket(&[]).unwrap();
        assert!(shut.may_stay(&caller));
        assert_eq!(on_socket(&[("via", "1.1 proxy")]).unwrap_err(), Refusal::PassedOn);
    }

    /// The cookie of a login is good for pages of this server, and ends with its token.
    #[test]
    fn a_cookie_is_good_for_our_own_pages_only() {
        let shut = guard(GuardRules::default());
        let login = shut.issue_pass(PassKind::Login, &Caller::owner(Some(LOCAL_KEY_ID))).unwrap();
        let cookie = format!("other=1; {}={}", login_cookie_name(peer()), login.text);
        let check = |method: Method, more: &[(&'static str, &str)], expected: Option<Refusal>| {
            let mut pairs = vec![("cookie", cookie.as_str())];
            pairs.extend(more);
            let answer = shut.identify(&request(method, &pairs), peer(), None);
            assert_eq!(answer.err(), expected, "{pairs:?}");
        };
        let origin = ("origin", "http://127.0.0.1:1");
        check(Method::GET, &[], None);
        check(Method::GET, &[("sec-fetch-site", "same-origin")], None);
        check(Method::GET, &[("sec-fetch-site", "same-site")], Some(Refusal::TokenNeeded));
        check(Method::POST, &[], Some(Refusal::OriginNeeded));
        check(Method::POST, &[origin], None);
        check(
            Method::POST,
            &[origin, ("sec-fetch-site", "cross-site")],
            Some(Refusal::TokenNeeded),
        );
        shut.log_out(&headers(&[("cookie", &cookie)]), peer());
        check(Method::GET, &[], Some(Refusal::TokenNeeded));
        let gone = Caller::owner(Some("a-token-that-was-removed"));
        let login = shut.issue_pass(PassKind::Login, &gone).unwrap();
        assert!(shut.by_pass(PassKind::Login, &login.text).is_none());
    }
}
