//! Whether an address leads back to this process, however it is spelt.

use std::net::{IpAddr, SocketAddr};

use crate::config::is_loopback_host;

/// The addresses of this process, and of the engine that it is attached to.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnAddresses(Vec<SocketAddr>);

impl OwnAddresses {
    /// Adds an address that this process listens on.
    pub(crate) fn add(&mut self, address: SocketAddr) {
        self.0.push(address);
    }

    /// Adds an address by name; one that cannot be resolved is left out.
    pub(crate) async fn add_named(&mut self, host: &str, port: u16) {
        self.0.extend(resolve(host, port).await);
    }

    /// Whether `host:port` is one of these.
    pub(crate) async fn include(&self, host: &str, port: u16) -> bool {
        if !self.0.iter().any(|own| own.port() == port) {
            return false;
        }
        let there = resolve(host, port).await;
        self.0.iter().filter(|own| own.port() == port).any(|own| {
            there.iter().any(|other| is_same(own.ip(), other.ip()))
                || (is_loopback_host(host) && is_here(own.ip()))
        })
    }
}

/// Two addresses are the same if they are equal, or both stay on this machine. A listener on every address is reached
/// at any address of this machine.
fn is_same(own: IpAddr, other: IpAddr) -> bool {
    let (own, other) = (own.to_canonical(), other.to_canonical());
    own == other
        || (is_here(own) && is_here(other))
        || (own.is_unspecified() && is_of_this_machine(other))
}

/// Only an address of this machine can be bound here.
fn is_of_this_machine(ip: IpAddr) -> bool {
    std::net::UdpSocket::bind((ip, 0)).is_ok()
}

fn is_here(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    ip.is_loopback() || ip.is_unspecified()
}

async fn resolve(host: &str, port: u16) -> Vec<SocketAddr> {
    match tokio::net::lookup_host((host, port)).await {
        Ok(found) => found.collect(),
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_spelling_of_this_machine_is_known() {
        let mut own = OwnAddresses::default();
        own.add("127.0.0.1:49134".parse().unwrap());
        for host in [
            "127.0.0.1",
            "localhost",
            "LOCALHOST",
            "::1",
            "127.1.2.3",
            "0.0.0.0",
            "::",
            "::ffff:127.0.0.1",
        ] {
            assert!(own.include(host, 49134).await, "{host}");
            assert!(!own.include(host, 49135).await, "{host}");
        }
        assert!(!own.include("192.0.2.1", 49134).await);
        let mut own = OwnAddresses::default();
        own.add("192.0.2.7:1".parse().unwrap());
        assert!(own.include("192.0.2.7", 1).await);
        assert!(!own.include("127.0.0.1", 1).await);
    }

    #[tokio::test]
    async fn one_that_listens_everywhere_is_reached_at_each_address_of_this_machine() {
        let mut own = OwnAddresses::default();
        own.add("0.0.0.0:1".parse().unwrap());
        // Nothing is sent; the system only reports which of its addresses it would use.
        let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        let routed = probe.connect("192.0.2.1:9").and_then(|()| probe.local_addr());
        let of_interface = routed.map_or(std::net::Ipv4Addr::LOCALHOST.into(), |at| at.ip());
        assert!(own.include(&of_interface.to_string(), 1).await, "{of_interface}");
        assert!(!own.include("192.0.2.1", 1).await, "an address of another machine");
    }
}
