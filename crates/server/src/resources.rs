//! The resources that a server holds: its directory, its ports and its socket.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bough_platform::{Clock, Disk, Entropy, OsDisk, OsEntropy, SystemClock};
use bough_service::{Bindings, Service};
use bough_session::hex;
use bough_store::shared_state::{NativeSharedState, SharedState};
use tokio::net::TcpListener;

use crate::config::{Address, Config, Loaded, WsUrl};
use crate::guard::{LocalKey, Tokens};
use crate::net::{Listener, SocketClaim, bind};
use crate::own_address::OwnAddresses;
use crate::run::ServeError;

/// The resources that a server holds.
pub(crate) struct ServerResources {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) shared: Arc<dyn SharedState>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) http: TcpListener,
    pub(crate) bus: Option<TcpListener>,
    /// The Unix socket for HTTP, and the claim that keeps other servers from it.
    pub(crate) socket: Option<(Listener, SocketClaim)>,
    pub(crate) local_key: Arc<LocalKey>,
    pub(crate) instance: String,
}

impl ServerResources {
    /// Takes the directory, the ports and the socket.
    pub(crate) async fn take(loaded: &Loaded, socket: Option<&Path>) -> Result<Self, ServeError> {
        let disk = OsDisk::create(&loaded.data_dir)
            .map_err(|source| ServeError::DataDir { path: loaded.data_dir.clone(), source })?;
        let shared = Arc::new(NativeSharedState::open(&disk, &loaded.data_dir)?);
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy);
        let mut instance = [0; 16];
        entropy.fill(&mut instance)?;
        let http = listen_on("listen", &loaded.config.listen).await?;
        let bus = match loaded.config.bus.as_str() {
            "off" => None,
            address => Some(listen_on("bus", address).await?),
        };
        let socket = match socket {
            Some(path) => Some(listen_on_socket(path, &reachable(&http)).await?),
            None => None,
        };
        let clock = Arc::new(SystemClock::new());
        let local_key = Arc::new(LocalKey::draw(&*disk, &*clock, &*entropy)?);
        let instance = hex(&instance);
        Ok(Self { disk, shared, clock, entropy, http, bus, socket, local_key, instance })
    }

    /// The bindings of a bus or an engine, by its name.
    pub(crate) async fn bindings(
        &self,
        service: &Service,
        name: &str,
    ) -> Result<Bindings, ServeError> {
        let (shared, clock) = (self.shared.clone(), self.clock.clone());
        Ok(Bindings::open(service.clone(), shared, clock, name).await?)
    }

    /// The name of the bus for the positions of bindings: several servers on one directory have one each. If the system
    /// chooses the port, no client can find the bus again, so the name is valid for this run.
    pub(crate) fn bus_name(&self, config: &Config) -> Result<Option<String>, ServeError> {
        let Some(bus) = &self.bus else { return Ok(None) };
        let chosen = Address::parse("bus", &config.bus)?.port == 0;
        let name = if chosen { bus.local_addr()?.to_string() } else { config.bus.clone() };
        Ok(Some(format!("bus {name}")))
    }

    fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let listeners = std::iter::once(&self.http).chain(&self.bus);
        listeners.filter_map(|listener| listener.local_addr().ok())
    }

    pub(crate) fn is_loopback(&self) -> bool {
        self.addresses().all(|address| address.ip().to_canonical().is_loopback())
    }

    pub(crate) fn check_tokens(&self, tokens: &Tokens, config: &Config) -> Result<(), ServeError> {
        let reachable = self.addresses().find(|address| !address.ip().to_canonical().is_loopback());
        match reachable {
            Some(address) if !tokens.are_in_use() && !config.tokens.required => {
                Err(ServeError::NeedsTokens { address })
            }
            _ => Ok(()),
        }
    }

    /// Where a command on this machine reaches the server.
    pub(crate) fn reachable(&self) -> String {
        reachable(&self.http)
    }

    /// The addresses that a bridge must not lead to: our own bus, and the engine that we are
    /// attached to.
    pub(crate) async fn own_addresses(&self, config: &Config) -> Result<OwnAddresses, ServeError> {
        let mut own = OwnAddresses::default();
        if let Some(bus) = &self.bus {
            own.add(bus.local_addr()?);
        }
        if let Some(engine) = &config.engine {
            let url = WsUrl::parse("engine", engine)?;
            own.add_named(&url.host, url.port).await;
        }
        Ok(own)
    }
}

async fn listen_on(what: &'static str, text: &str) -> Result<TcpListener, ServeError> {
    let address = Address::parse(what, text)?;
    bind(&address).await.map_err(|source| ServeError::Listen {
        what,
        address: text.to_owned(),
        source,
    })
}

fn reachable(http: &TcpListener) -> String {
    let Ok(mut address) = http.local_addr() else {
        return String::new();
    };
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    format!("http://{address}")
}

#[cfg(unix)]
async fn listen_on_socket(
    path: &Path,
    address: &str,
) -> Result<(Listener, SocketClaim), ServeError> {
    use crate::net::{LocalSocketError, claim};
    match claim(path, address).await {
        Ok((socket, claim)) => Ok((Listener::Local(socket), claim)),
        Err(LocalSocketError::Served { address }) => {
            Err(ServeError::SocketServed { path: path.to_owned(), address })
        }
        Err(LocalSocketError::Io(source)) => {
            Err(ServeError::Listen { what: "socket", address: path.display().to_string(), source })
        }
    }
}

#[cfg(not(unix))]
async fn listen_on_socket(
    path: &Path,
    _address: &str,
) -> Result<(Listener, SocketClaim), ServeError> {
    let source = std::io::Error::other("this system has no Unix sockets");
    Err(ServeError::Listen { what: "socket", address: path.display().to_string(), source })
}
