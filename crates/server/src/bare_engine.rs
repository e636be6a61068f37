//! The engine's side of the worker protocol without any sessions on it: for tests of workers.

use std::net::SocketAddr;
use std::sync::Arc;

use bough_platform::{OsEntropy, SystemClock};
use bough_service::{Bindings, Service};
use bough_store::MemoryStore;
use bough_store::shared_state::MemorySharedState;

use crate::app::App;
use crate::bus::Bus;
use crate::config::{Address, LimitsConfig};
use crate::guard::{Guard, GuardRules};
use crate::net::{Connections, Listener, ListenerKind, bind, serve};
use crate::run::ServeError;
use crate::shutdown::{ShutdownSwitch, shutdown_switch};

/// A bus with only what its workers register; it ends when it is dropped.
#[derive(Debug)]
pub struct BareEngine {
    address: SocketAddr,
    switch: ShutdownSwitch,
}

impl BareEngine {
    /// Listens on loopback, on a port of the system's choice or on `port`.
    pub async fn start(port: u16) -> Result<Self, ServeError> {
        let address = Address { host: "127.0.0.1".to_owned(), port };
        let listener = bind(&address).await?;
        let address = listener.local_addr()?;
        let (switch, ending) = shutdown_switch();
        let clock = Arc::new(SystemClock::new());
        let store = MemoryStore::new(Arc::new(OsEntropy)).map_err(std::io::Error::other)?;
        let service = Service::new(Arc::new(store), clock.clone(), Arc::new(OsEntropy));
        let rules = GuardRules { is_open: true, ..GuardRules::default() };
        let guard = Guard::new(rules, clock.clone(), Arc::new(OsEntropy));
        let limits = LimitsConfig::default();
        let shared = Arc::new(MemorySharedState::new());
        let bindings = Bindings::open(service.clone(), shared.clone(), clock.clone(), "").await;
        let bindings = bindings.map_err(std::io::Error::other)?;
        let app = App::new(service, guard, clock, limits, ending.clone(), String::new(), None);
        let bus = Bus::new(app, Arc::new(OsEntropy), bindings, shared, false)?;
        let connections = Connections::default();
        tokio::spawn(serve(
            Listener::Tcp(listener),
            ListenerKind::Bus,
            bus.router(),
            move || limits,
            connections,
            ending,
        ));
        Ok(Self { address, switch })
    }

    /// The address for workers.
    #[must_use]
    pub fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for BareEngine {
    fn drop(&mut self) {
        self.switch.begin();
    }
}
