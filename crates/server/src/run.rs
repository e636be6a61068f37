//! Starting a server, and ending it well.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bough_platform::{Clock, Disk, Entropy, OsDisk, OsEntropy, Platform, SystemClock};
use bough_service::{Bindings, Service};
use bough_session::hex;
use bough_store::shared_state::{NativeSharedState, SharedState, SharedStateError};
use bough_store::{NativeStore, Store, StoreError};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::api::{EXAMPLE_MESSAGE, http_router};
use crate::app::App;
use crate::bus::Bus;
use crate::config::{self, Address, Config, ConfigError, Loaded, LogFormat, Overrides, WsUrl};
use crate::engine::{EngineError, EngineLink};
use crate::guard::{Guard, LocalKey, TOKENS_FILE, TokenError, Tokens};
use crate::limits::DRAIN_TIMEOUT;
use crate::logs::start_log;
use crate::net::{Connections, ListenerKind, bind, serve};
use crate::own_address::OwnAddresses;
use crate::settings::{Applier, AskError, Environment, Sources, mark, service_settings};
use crate::shutdown::{Shutdown, ShutdownSwitch, shutdown_switch};
use crate::stores::OpenError;
use crate::tasks::{
    close_abandoned_streams, keep_index, look_at_store_first, sweep_trash, watch_settings,
    watch_store,
};

/// Connects to an iii engine.
pub type EngineConnector = Arc<dyn Fn(&str) -> Arc<dyn EngineLink> + Send + Sync>;

/// Puts something over the native store that is to be served with it.
pub type NativeWrapper =
    Arc<dyn Fn(NativeStore, Platform) -> Result<Arc<dyn Store>, StoreError> + Send + Sync>;

/// How a server is to run. What is `None` comes from the environment, the configuration file or the defaults.
#[derive(Clone, Default)]
pub struct ServeOptions {
    /// Where the data is.
    pub data_dir: Option<PathBuf>,
    /// Where HTTP is served.
    pub listen: Option<String>,
    /// Where the bus is served, or `off`.
    pub bus: Option<String>,
    /// An iii engine to attach to.
    pub engine: Option<String>,
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// How log lines look.
    pub log: Option<LogFormat>,
    /// How to connect to an engine; without it `engine` is refused.
    pub connect: Option<EngineConnector>,
    /// What to put over the native store; nothing when `None`.
    pub wrap_native: Option<NativeWrapper>,
    /// Environment variables; the process's own when `None`.
    pub environment: Option<Environment>,
}

/// Why a server did not start, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data directory cannot be used.
    #[error("cannot use the data directory {}: {source}; check that it is yours, or give --data-dir", path.display())]
    DataDir {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// An address cannot be listened on.
    #[error(
        "cannot listen on {address} for {what}: {source}; is another server running? Give --{what} another address"
    )]
    Listen {
        /// `listen` or `bus`, as the flag is called.
        what: &'static str,
        /// The address.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// Others could reach the server, and nothing would keep them out.
    #[error(
        "{address} can be reached from other machines and there are no tokens; make one with `bough token create`, or listen on 127.0.0.1"
    )]
    NeedsTokens {
        /// The address.
        address: SocketAddr,
    },
    /// The tokens cannot be read.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The store did not open.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The documents that processes share cannot be read.
    #[error(transparent)]
    SharedState(#[from] SharedStateError),
    /// The engine did not take us.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// This program was built without the part that attaches to engines.
    #[error("this program cannot attach to an engine; leave --engine out")]
    NoEngine,
    /// The system has no randomness, or the like.
    #[error("the system refused: {0}")]
    System(#[from] io::Error),
}

/// A server that runs.
pub struct Server {
    app: App,
    sources_disk: Arc<dyn Disk>,
    local_key: Arc<LocalKey>,
    link: Option<Arc<dyn EngineLink>>,
    /// The bindings of the bus, and those of the engine.
    bindings: Vec<Bindings>,
    http_address: SocketAddr,
    bus_address: Option<SocketAddr>,
    arrivals: Connections,
    loaded: Loaded,
    /// Where the sessions are, for people.
    kept: String,
    tasks: JoinSet<()>,
    switch: ShutdownSwitch,
}

/// Runs a server until `shutdown` begins: prints where it listens, where its data is and what to try next, serves, and at the
/// end finishes what it is doing and closes.
pub async fn run(options: ServeOptions, shutdown: Shutdown) -> Result<(), ServeError> {
    let server = Server::start(options).await?;
    let words = server.welcome();
    let mut out = io::stdout().lock();
    out.write_all(words.as_bytes())?;
    out.flush()?;
    drop(out);
    shutdown.begun().await;
    server.stop().await;
    Ok(())
}

/// What ends a server on Ctrl-C or SIGTERM.
#[must_use]
pub fn shutdown_on_signals() -> Shutdown {
    let (switch, shutdown) = shutdown_switch();
    tokio::spawn(async move {
        wait_for_signal().await;
        switch.begin();
    });
    shutdown
}

#[cfg(unix)]
async fn wait_for_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

#[cfg(not(unix))]
async fn wait_for_signal() {
    // Without a signal to wait for, nothing ends the server but its process.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl Server {
    /// Starts a server; it serves when this returns.
    pub async fn start(options: ServeOptions) -> Result<Self, ServeError> {
        let environment = options.environment.clone().unwrap_or_else(process_environment);
        let flags = flags(&options);
        // Where the file is, is known once it was read; it is read again after the look at it, so that no change slips in between.
        let config_mark = mark(&config::load(&flags, &*environment)?.watched);
        let loaded = config::load(&flags, &*environment)?;
        start_log(loaded.config.log);
        let place = Place::take(&loaded).await?;
        let link = connect(&options, &loaded.config)?;
        let sources = Sources {
            flags,
            environment,
            link: link.clone(),
            wrap_native: options.wrap_native.clone(),
            data_dir: loaded.data_dir.clone(),
            disk: place.disk.clone(),
            clock: place.clock.clone(),
            entropy: place.entropy.clone(),
            address: place.reachable(),
            instance: place.instance.clone(),
            own: place.own_addresses(&loaded.config).await?,
            is_loopback: place.is_loopback(),
            local_key: place.local_key.clone(),
            config_mark,
            tokens_mark: mark(&loaded.data_dir.join(TOKENS_FILE)),
        };
        let tokens = sources.load_tokens()?.unwrap_or_default();
        place.check_tokens(&tokens, &loaded.config)?;
        Self::build(place, sources, tokens, loaded, link).await
    }

    async fn build(
        place: Place,
        sources: Sources,
        tokens: Tokens,
        loaded: Loaded,
        link: Option<Arc<dyn EngineLink>>,
    ) -> Result<Self, ServeError> {
        let mut config = loaded.config.clone();
        let is_engine_asked = sources.ask_engine(&mut config).await.map_err(ask_failed)?;
        let store = sources.open(&config).await?;
        let kept = sources.where_kept(&config);
        let service = Service::new(store, place.clock.clone(), place.entropy.clone());
        service.set_search_index(sources.open_index(&config)?);
        service.set_open_streams(place.shared.clone());
        service.set_settings(service_settings(&config));
        let guard = Guard::new(sources.rules(&config, &tokens), place.clock.clone());
        let (switch, ending) = shutdown_switch();
        let app = App::new(
            service.clone(),
            guard,
            place.clock.clone(),
            config.limits,
            ending,
            place.instance.clone(),
        );
        let applier = Arc::new(Applier::new(sources, app.clone(), config, tokens, is_engine_asked));
        service.set_reload(applier.clone());
        let mut bindings = Vec::new();
        if let (Some(link), Some(url)) = (&link, &loaded.config.engine) {
            let of_engine = place.bindings(&service, &format!("engine {url}")).await?;
            bindings.push(of_engine.clone());
            link.serve(service.clone(), of_engine, place.instance.clone()).await?;
        }
        let of_bus = match place.bus_name(&loaded.config)? {
            Some(name) => Some(place.bindings(&service, &name).await?),
            None => None,
        };
        bindings.extend(of_bus.clone());
        let mut server = Self {
            app,
            sources_disk: place.disk.clone(),
            local_key: place.local_key.clone(),
            link,
            bindings,
            http_address: place.http.local_addr()?,
            bus_address: place.bus.as_ref().map(TcpListener::local_addr).transpose()?,
            arrivals: Connections::default(),
            loaded,
            kept,
            tasks: JoinSet::new(),
            switch,
        };
        look_at_store_first(&server.app).await;
        server.listen(place, of_bus)?;
        server.begin_tasks(applier);
        Ok(server)
    }

    fn listen(&mut self, place: Place, bindings: Option<Bindings>) -> Result<(), ServeError> {
        let limits = |app: &App| {
            let app = app.clone();
            move || app.limits()
        };
        let app = &self.app;
        if let (Some(listener), Some(bindings)) = (place.bus, bindings) {
            let bus = Bus::new(app.clone(), place.entropy.clone(), bindings, true)?;
            let arrivals = self.arrivals.clone();
            let ending = app.shutdown.clone();
            let serving =
                serve(listener, ListenerKind::Bus, bus.router(), limits(app), arrivals, ending);
            self.tasks.spawn(serving);
        }
        let connections = app.http_connections.clone();
        let router = http_router(app);
        let ending = app.shutdown.clone();
        let serving =
            serve(place.http, ListenerKind::Http, router, limits(app), connections, ending);
        self.tasks.spawn(serving);
        Ok(())
    }

    fn begin_tasks(&mut self, applier: Arc<Applier>) {
        let watched = self.loaded.watched.clone();
        self.tasks.spawn(watch_settings(self.app.clone(), applier, watched));
        self.tasks.spawn(watch_store(self.app.clone()));
        self.tasks.spawn(sweep_trash(self.app.clone()));
        self.tasks.spawn(keep_index(self.app.clone()));
        self.tasks.spawn(close_abandoned_streams(self.app.clone()));
    }

    /// Where HTTP is served.
    #[must_use]
    pub fn http_address(&self) -> SocketAddr {
        self.http_address
    }

    /// Where the bus is served.
    #[must_use]
    pub fn bus_address(&self) -> Option<SocketAddr> {
        self.bus_address
    }

    /// The service, for whoever runs the server inside another program.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.app.service
    }

    /// What a person should know once the server runs.
    #[must_use]
    pub fn welcome(&self) -> String {
        let http = self.http_address;
        let bus = match self.bus_address {
            Some(address) => format!("ws://{address}"),
            None => "off".to_owned(),
        };
        let kept = &self.kept;
        format!(
            "Bough is listening.\n  HTTP   http://{http}\n  bus    {bus}\n  data   {kept}\n\n\
             Try:\n  curl http://{http}/v1/sessions\n  curl -X PUT http://{http}/v1/sessions/first \
             -H 'content-type: application/json' -d '{{\"title\":\"My first\"}}'\n  curl -X POST \
             http://{http}/v1/sessions/first/entries -H 'content-type: application/json' -d \
             '{{\"message\":{EXAMPLE_MESSAGE}}}'\n  curl -N http://{http}/v1/events?after=start\n  the API: \
             http://{http}/openapi.json\n"
        )
    }

    /// Ends the server: takes nothing new, finishes what it is doing, closes the store.
    pub async fn stop(mut self) {
        tracing::info!("the server is closing");
        self.switch.begin();
        if let Some(link) = &self.link {
            link.detach().await;
        }
        let open = [&self.app.http_connections, &self.arrivals, &self.app.bus_connections];
        for connections in open {
            if !connections.drained(DRAIN_TIMEOUT).await {
                tracing::warn!(open = connections.count(), "some connections did not end in time");
            }
        }
        while self.tasks.join_next().await.is_some() {}
        for bindings in &self.bindings {
            if let Err(error) = bindings.flush().await {
                tracing::error!(%error, "the places of bindings were not written; some events come twice");
            }
        }
        if let Err(error) = self.app.service.store().close().await {
            tracing::error!(%error, "the store did not close well; it is recovered at the next start");
        }
        if let Err(error) = self.local_key.remove(&*self.sources_disk) {
            tracing::debug!(%error, "the local key could not be removed");
        }
        tracing::info!("closed");
    }
}

fn process_environment() -> Environment {
    Arc::new(|name| std::env::var(name).ok())
}

fn flags(options: &ServeOptions) -> Overrides {
    Overrides {
        data_dir: options.data_dir.clone(),
        listen: options.listen.clone(),
        bus: options.bus.clone(),
        engine: options.engine.clone(),
        config: options.config.clone(),
        log_format: options.log,
        log_level: None,
    }
}

fn connect(
    options: &ServeOptions,
    config: &Config,
) -> Result<Option<Arc<dyn EngineLink>>, ServeError> {
    let Some(url) = &config.engine else {
        return Ok(None);
    };
    let connect = options.connect.as_ref().ok_or(ServeError::NoEngine)?;
    Ok(Some(connect(url)))
}

fn ask_failed(error: AskError) -> ServeError {
    match error {
        AskError::Engine(error) => error.into(),
        AskError::Config(error) => error.into(),
    }
}

/// What a server holds of the machine: its directory and its ports.
struct Place {
    disk: Arc<dyn Disk>,
    shared: Arc<dyn SharedState>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    http: TcpListener,
    bus: Option<TcpListener>,
    local_key: Arc<LocalKey>,
    instance: String,
}

impl Place {
    async fn take(loaded: &Loaded) -> Result<Self, ServeError> {
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
        let clock = Arc::new(SystemClock::new());
        let local_key = Arc::new(LocalKey::draw(&*disk, &*clock, &*entropy)?);
        let instance = hex(&instance);
        Ok(Self { disk, shared, clock, entropy, http, bus, local_key, instance })
    }

    /// The bindings of a bus or an engine, by its name.
    async fn bindings(&self, service: &Service, name: &str) -> Result<Bindings, ServeError> {
        let (shared, clock) = (self.shared.clone(), self.clock.clone());
        Ok(Bindings::open(service.clone(), shared, clock, name).await?)
    }

    /// What the bus is called where places are kept: several servers on one directory have one each. Where the system chooses
    /// the port nobody can find the bus again, and its name is of this run.
    fn bus_name(&self, config: &Config) -> Result<Option<String>, ServeError> {
        let Some(bus) = &self.bus else { return Ok(None) };
        let chosen = Address::parse("bus", &config.bus)?.port == 0;
        let name = if chosen { bus.local_addr()?.to_string() } else { config.bus.clone() };
        Ok(Some(format!("bus {name}")))
    }

    fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let listeners = std::iter::once(&self.http).chain(&self.bus);
        listeners.filter_map(|listener| listener.local_addr().ok())
    }

    fn is_loopback(&self) -> bool {
        self.addresses().all(|address| address.ip().to_canonical().is_loopback())
    }

    fn check_tokens(&self, tokens: &Tokens, config: &Config) -> Result<(), ServeError> {
        let reachable = self.addresses().find(|address| !address.ip().to_canonical().is_loopback());
        match reachable {
            Some(address) if !tokens.are_in_use() && !config.tokens.required => {
                Err(ServeError::NeedsTokens { address })
            }
            _ => Ok(()),
        }
    }

    /// Where a command on this machine reaches the server.
    fn reachable(&self) -> String {
        let Ok(mut address) = self.http.local_addr() else {
            return String::new();
        };
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        format!("http://{address}")
    }

    /// Where a bridge must not lead: our own bus, and the engine that we are attached to.
    async fn own_addresses(&self, config: &Config) -> Result<OwnAddresses, ServeError> {
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
