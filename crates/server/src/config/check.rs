//! Validates values once, before anything is built from them.

use std::net::{IpAddr, SocketAddr};

use super::error::ConfigError;
use super::load::OFF;
use super::model::{AdapterConfig, BridgeConfig, Config, LimitsConfig, WorkerConfig};
use super::span::Span;

impl Config {
    /// Refuses values that make no sense.
    pub fn check(&self) -> Result<(), ConfigError> {
        Address::parse("listen", &self.listen)?;
        if self.bus != OFF {
            Address::parse("bus", &self.bus)?;
        }
        if let Some(engine) = &self.engine {
            WsUrl::parse("engine", engine)?;
        }
        check_limits(&self.limits)?;
        for origin in &self.allow.origins {
            check_origin(origin)?;
        }
        for host in &self.allow.hosts {
            check_host(host)?;
        }
        self.worker().check()
    }

    /// Refuses addresses that other machines can reach without a token, as far as the text shows it: what a name
    /// resolves to is known when it is bound.
    pub fn check_exposure(&self, has_tokens: bool) -> Result<(), ConfigError> {
        if has_tokens || self.tokens.required {
            return Ok(());
        }
        let bus = (self.bus != OFF).then_some(("bus", &self.bus));
        for (field, text) in [("listen", &self.listen)].into_iter().chain(bus) {
            let address = Address::parse(field, text)?;
            let is_number = address.host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
            if is_number && !address.is_loopback() {
                let reason = "other machines can reach this and there are no tokens; make one \
                              with `bough token create`, or listen on 127.0.0.1";
                return Err(ConfigError::value(field, text, reason));
            }
        }
        Ok(())
    }
}

impl WorkerConfig {
    /// Refuses values that make no sense.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_page("default_list_limit", self.default_list_limit)?;
        check_page("max_list_limit", self.max_list_limit)?;
        match &self.adapter {
            AdapterConfig::Bridge(bridge) => check_bridge(bridge),
            AdapterConfig::Fs(fs) if fs.data_dir.trim().is_empty() => {
                Err(ConfigError::value("adapter.config.data_dir", "", "name a directory"))
            }
            _ => Ok(()),
        }
    }
}

fn check_page(field: &'static str, size: usize) -> Result<(), ConfigError> {
    /// A page larger than this would be larger than any message may be.
    const PAGE_LIMIT_MAX: usize = 10_000;
    if (1..=PAGE_LIMIT_MAX).contains(&size) {
        return Ok(());
    }
    let reason = format!("a page has 1 to {PAGE_LIMIT_MAX} items");
    Err(ConfigError::value(field, size.to_string(), reason))
}

fn check_bridge(bridge: &BridgeConfig) -> Result<(), ConfigError> {
    WsUrl::parse("adapter.config.url", &bridge.url)?;
    if bridge.timeout_ms == 0 {
        let reason = "a call needs some time; the usual is 5000";
        return Err(ConfigError::value("adapter.config.timeout_ms", "0", reason));
    }
    Ok(())
}

fn check_limits(limits: &LimitsConfig) -> Result<(), ConfigError> {
    let counts = [
        ("limits.body_bytes", limits.body_bytes),
        ("limits.bus_message_bytes", limits.bus_message_bytes),
        ("limits.connections", limits.connections),
        ("limits.requests", limits.requests),
        ("limits.streams", limits.streams),
        ("limits.stream_bytes_per_token", limits.stream_bytes_per_token),
    ];
    for (field, count) in counts {
        if count == 0 {
            return Err(ConfigError::value(
                field,
                "0",
                "with none of them nothing could be served",
            ));
        }
    }
    let spans = [
        ("limits.header_timeout", limits.header_timeout),
        ("limits.request_timeout", limits.request_timeout),
        ("limits.write_stall_timeout", limits.write_stall_timeout),
        ("limits.heartbeat", limits.heartbeat),
    ];
    for (field, span) in spans {
        if span.duration().is_none_or(|time| time.is_zero()) {
            return Err(ConfigError::value(
                field,
                span.to_string(),
                "this must end, and not at once",
            ));
        }
    }
    Ok(())
}

fn check_origin(origin: &str) -> Result<(), ConfigError> {
    let rest = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    let is_origin =
        rest.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*', '?', '#', '@']));
    if is_origin {
        return Ok(());
    }
    let reason = "write scheme and host without a path, such as https://console.example";
    Err(ConfigError::value("allow.origins", origin, reason))
}

fn check_host(host: &str) -> Result<(), ConfigError> {
    let is_host = !host.is_empty() && !host.contains(['/', '*', '?', '#', '@', ' ']);
    if is_host && (!host.contains(':') || host.starts_with('[')) {
        return Ok(());
    }
    let reason = "write a name without scheme, port or wildcard, such as bough.example";
    Err(ConfigError::value("allow.hosts", host, reason))
}

/// `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name or an IP address.
    pub host: String,
    /// The port; 0 asks the system for one.
    pub port: u16,
}

impl Address {
    /// Reads `HOST:PORT`.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, ConfigError> {
        let refuse = || ConfigError::value(field, text, "write HOST:PORT, such as 127.0.0.1:7717");
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self { host: address.ip().to_string(), port: address.port() });
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(refuse)?;
        let port = port.parse().map_err(|_| refuse())?;
        if host.is_empty() || host.contains([':', '/', ' ']) {
            return Err(refuse());
        }
        Ok(Self { host: host.to_owned(), port })
    }

    /// Whether only this machine can reach it, as far as the text shows it.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        is_loopback_host(&self.host)
    }
}

pub(crate) fn is_loopback_host(host: &str) -> bool {
    let ip: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
    match ip {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => {
            host.eq_ignore_ascii_case("localhost")
                || host.to_ascii_lowercase().ends_with(".localhost")
        }
    }
}

/// `ws://HOST:PORT`; without a port it is 80, as in every address of this kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WsUrl {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl WsUrl {
    /// Reads `ws://HOST:PORT`, with or without a path.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, ConfigError> {
        let refuse = |reason: &str| ConfigError::value(field, without_password(text), reason);
        if text.contains('@') {
            // It may be a secret, so it is not repeated.
            let reason = "an address has no user or password; a token has a field of its own";
            return Err(ConfigError::value(field, "...@...", reason));
        }
        if let Some((before, _)) = text.split_once(['#', '?']) {
            let reason = "nothing after `#` or `?` would be used; write ws://HOST:PORT";
            return Err(ConfigError::value(field, format!("{before}..."), reason));
        }
        if text.to_ascii_lowercase().starts_with("wss://") {
            return Err(refuse(
                "encrypted sockets are not spoken here; put a tunnel in between and use ws://",
            ));
        }
        let uri: http::Uri = text.parse().map_err(|_| refuse("write ws://HOST:PORT"))?;
        let is_ws = uri.scheme_str().is_some_and(|scheme| scheme.eq_ignore_ascii_case("ws"));
        let host = uri.host().unwrap_or_default();
        if !is_ws || host.is_empty() {
            return Err(refuse("write ws://HOST:PORT, such as ws://127.0.0.1:49134"));
        }
        let authority = uri.authority().map_or("", http::uri::Authority::as_str);
        let port = match authority.strip_prefix(host).unwrap_or_default() {
            "" => 80,
            // An invalid port is not treated as a missing one.
            text => text.strip_prefix(':').and_then(|port| port.parse().ok()).unwrap_or(0),
        };
        if port == 0 {
            return Err(refuse("a port is a number from 1 to 65535"));
        }
        Ok(Self { host: host.trim_matches(['[', ']']).to_owned(), port })
    }
}

impl std::fmt::Display for WsUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { host, port } = self;
        match host.contains(':') {
            true => write!(f, "ws://[{host}]:{port}"),
            false => write!(f, "ws://{host}:{port}"),
        }
    }
}

/// An address without user, password and query.
pub(crate) fn without_password(url: &str) -> String {
    let (base, query) = url.split_once('?').map_or((url, ""), |(base, _)| (base, "?(hidden)"));
    let (scheme, rest) = base.split_once("://").map_or(("", base), |(scheme, rest)| (scheme, rest));
    let mark = if scheme.is_empty() { "" } else { "://" };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}{mark}(hidden)@{host}{query}"),
        None => format!("{scheme}{mark}{rest}{query}"),
    }
}

/// Whether a length of time ends.
pub(crate) fn ends(span: Span, otherwise: std::time::Duration) -> std::time::Duration {
    span.duration().unwrap_or(otherwise)
}
