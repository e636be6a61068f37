//! Starting a server, and ending it well.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bough_platform::{Disk, Platform};
use bough_service::{Bindings, Service};
use bough_store::shared_state::SharedStateError;
use bough_store::{NativeStore, Store, StoreError};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::api::{EXAMPLE_MESSAGE, http_router};
use crate::app::App;
use crate::bus::Bus;
use crate::config::{self, Config, ConfigError, Loaded, LogFormat, Overrides};
use crate::engine::{EngineError, EngineLink};
use crate::guard::{Guard, LocalKey, TOKENS_FILE, TokenError, Tokens};
use crate::limits::{BUS_LAST_BYTES_WAIT, DRAIN_TIMEOUT};
use crate::logs::start_log;
use crate::net::{Connections, Listener, ListenerKind, SocketClaim, serve};
use crate::resources::ServerResources;
use crate::settings::{Applier, Environment, Sources, mark, offer, service_settings};
use crate::shutdown::{Shutdown, ShutdownSwitch, shutdown_switch};
use crate::stores::OpenError;
use crate::tasks::{
    check_store_first, close_abandoned_streams, keep_index, measure_store, sweep_keys, sweep_trash,
    watch_settings, watch_store,
};

/// Connects to an iii engine.
pub type EngineConnector = Arc<dyn Fn(&str) -> Arc<dyn EngineLink> + Send + Sync>;

/// Wraps the native store, to serve something together with it.
pub type NativeWrapper =
    Arc<dyn Fn(NativeStore, Platform) -> Result<Arc<dyn Store>, StoreError> + Send + Sync>;

/// How a server is to run. A value that is `None` comes from the environment, the configuration file or the defaults.
#[derive(Clone, Default)]
pub struct ServeOptions {
    /// The data directory.
    pub data_dir: Option<PathBuf>,
    /// The address of HTTP.
    pub listen: Option<String>,
    /// The address of the bus, or `off`.
    pub bus: Option<String>,
    /// A Unix socket on which HTTP is served to the server's own user, without tokens. Unless they are given too, the
    /// bus is off, and HTTP also has an address for commands, which send the key of the data directory.
    pub socket: Option<PathBuf>,
    /// The server is idle this long after its last client left; see [`Server::idle`].
    pub idle_exit: Option<Duration>,
    /// An iii engine to attach to.
    pub engine: Option<String>,
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// The format of log lines.
    pub log: Option<LogFormat>,
    /// How to connect to an engine; without it `engine` is refused.
    pub connect: Option<EngineConnector>,
    /// A wrapper for the native store; none if `None`.
    pub wrap_native: Option<NativeWrapper>,
    /// A host that `/mcp` offers instead of the sessions: for tests of the protocol with tools of their own.
    pub mcp_host: Option<Arc<dyn bough_mcp::Host>>,
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
        /// The error of the system.
        source: io::Error,
    },
    /// An address cannot be listened on.
    #[error(
        "cannot listen on {address} for {what}: {source}; is another server running? Give --{what} another one"
    )]
    Listen {
        /// `listen`, `bus` or `socket`, as the flag is called.
        what: &'static str,
        /// The address.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Another server has the socket.
    #[error("{} is served already, by the server at {address}; use that one", path.display())]
    SocketServed {
        /// The socket.
        path: PathBuf,
        /// The address of the other server.
        address: String,
    },
    /// Other machines could reach the server without a token.
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
    /// The system failed, for instance to provide randomness.
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
    socket: Option<(PathBuf, SocketClaim)>,
    idle_exit: Option<Duration>,
    arrivals: Connections,
    loaded: Loaded,
    /// Where the sessions are stored, in words for people.
    kept: String,
    tasks: JoinSet<()>,
    switch: ShutdownSwitch,
}

/// Runs a server until `shutdown` begins: prints its addresses, its data directory and what to try next, serves, and at
/// the end finishes running requests and closes.
pub async fn run(options: ServeOptions, shutdown: Shutdown) -> Result<(), ServeError> {
    let server = Server::start(options).await?;
    let words = server.welcome();
    let mut out = io::stdout().lock();
    out.write_all(words.as_bytes())?;
    out.flush()?;
    drop(out);
    tokio::select! {
        () = shutdown.begun() => {}
        () = server.idle() => {}
    }
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
    // Without a signal to wait for, only the end of the process ends the server.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl Server {
    /// Starts a server. It serves when this returns.
    pub async fn start(options: ServeOptions) -> Result<Self, ServeError> {
        let environment = options.environment.clone().unwrap_or_else(process_environment);
        let flags = flags(&options);
        // The path of the file is known once it was read. It is read again after its mark was taken, so that no change
        // is missed.
        let config_mark = mark(&config::load(&flags, &*environment)?.watched);
        let loaded = config::load(&flags, &*environment)?;
        start_log(loaded.config.log);
        let resources = ServerResources::take(&loaded, options.socket.as_deref()).await?;
        let link = connect(&options, &loaded.config)?;
        let sources = Sources {
            flags,
            environment,
            link,
            wrap_native: options.wrap_native.clone(),
            data_dir: loaded.data_dir.clone(),
            disk: resources.disk.clone(),
            shared: resources.shared.clone(),
            clock: resources.clock.clone(),
            entropy: resources.entropy.clone(),
            address: resources.reachable(),
            instance: resources.instance.clone(),
            own: resources.own_addresses(&loaded.config).await?,
            may_be_open: resources.is_loopback() && !has_only_socket(&options),
            local_key: resources.local_key.clone(),
            config_mark,
            tokens_mark: mark(&loaded.data_dir.join(TOKENS_FILE)),
        };
        let tokens = sources.load_tokens()?.unwrap_or_default();
        resources.check_tokens(&tokens, &loaded.config)?;
        Self::build(resources, sources, tokens, loaded, &options).await
    }

    async fn build(
        resources: ServerResources,
        sources: Sources,
        tokens: Tokens,
        loaded: Loaded,
        options: &ServeOptions,
    ) -> Result<Self, ServeError> {
        let link = sources.link.clone();
        let mut config = loaded.config.clone();
        sources.ask_engine(&mut config).await?;
        let store = sources.open(&config).await?;
        let kept = sources.where_kept(&config);
        let service = Service::new(store, resources.clock.clone(), resources.entropy.clone());
        service.set_search_index(sources.open_index(&config)?);
        service.set_open_streams(resources.shared.clone());
        service.set_used_keys(resources.shared.clone());
        service.set_settings(service_settings(&config));
        let rules = sources.rules(&config, &tokens);
        let guard = Guard::new(rules, resources.clock.clone(), resources.entropy.clone());
        let (switch, ending) = shutdown_switch();
        let app = App::new(
            service.clone(),
            guard,
            resources.clock.clone(),
            config.limits,
            ending,
            resources.instance.clone(),
            options.mcp_host.clone(),
        );
        app.set_own_settings(offer(&config));
        app.inspection.set_directory(sources.directory(&config)?);
        let applier = Arc::new(Applier::new(sources, app.clone(), config, tokens));
        service.set_reload(applier.clone());
        let mut bindings = Vec::new();
        if let (Some(link), Some(url)) = (&link, &loaded.config.engine) {
            let of_engine = resources.bindings(&service, &format!("engine {url}")).await?;
            bindings.push(of_engine.clone());
            link.serve(service.clone(), of_engine, resources.instance.clone()).await?;
        }
        let of_bus = match resources.bus_name(&loaded.config)? {
            Some(name) => Some(resources.bindings(&service, &name).await?),
            None => None,
        };
        bindings.extend(of_bus.clone());
        let mut server = Self {
            app,
            sources_disk: resources.disk.clone(),
            local_key: resources.local_key.clone(),
            link,
            bindings,
            http_address: resources.http.local_addr()?,
            bus_address: resources.bus.as_ref().map(TcpListener::local_addr).transpose()?,
            socket: None,
            idle_exit: options.idle_exit,
            arrivals: Connections::default(),
            loaded,
            kept,
            tasks: JoinSet::new(),
            switch,
        };
        check_store_first(&server.app).await;
        server.listen(resources, of_bus, options.socket.as_deref())?;
        server.begin_tasks(applier);
        Ok(server)
    }

    fn listen(
        &mut self,
        resources: ServerResources,
        bindings: Option<Bindings>,
        socket: Option<&Path>,
    ) -> Result<(), ServeError> {
        let app = self.app.clone();
        if let (Some(listener), Some(bindings)) = (resources.bus, bindings) {
            let bus = Bus::new(
                app.clone(),
                resources.entropy.clone(),
                bindings,
                resources.shared.clone(),
                true,
            )?;
            let arrivals = self.arrivals.clone();
            self.serve(Listener::Tcp(listener), ListenerKind::Bus, bus.router(), arrivals);
        }
        let (router, connections) = (http_router(&app), &app.http_connections);
        let listener = Listener::Tcp(resources.http);
        self.serve(listener, ListenerKind::Http, router.clone(), connections.clone());
        if let (Some((listener, claim)), Some(path)) = (resources.socket, socket) {
            self.socket = Some((path.to_owned(), claim));
            self.serve(listener, ListenerKind::Http, router, connections.clone());
        }
        Ok(())
    }

    fn serve(
        &mut self,
        listener: Listener,
        kind: ListenerKind,
        router: Router,
        connections: Connections,
    ) {
        let app = self.app.clone();
        let limits = move || app.limits();
        let ending = self.app.shutdown.clone();
        self.tasks.spawn(serve(listener, kind, router, limits, connections, ending));
    }

    fn begin_tasks(&mut self, applier: Arc<Applier>) {
        let watched = self.loaded.watched.clone();
        self.tasks.spawn(watch_settings(self.app.clone(), applier, watched));
        self.tasks.spawn(watch_store(self.app.clone()));
        self.tasks.spawn(sweep_trash(self.app.clone()));
        self.tasks.spawn(measure_store(self.app.clone()));
        self.tasks.spawn(keep_index(self.app.clone()));
        self.tasks.spawn(close_abandoned_streams(self.app.clone()));
        self.tasks.spawn(sweep_keys(self.app.clone()));
    }

    /// The address of HTTP.
    #[must_use]
    pub fn http_address(&self) -> SocketAddr {
        self.http_address
    }

    /// The address of the bus.
    #[must_use]
    pub fn bus_address(&self) -> Option<SocketAddr> {
        self.bus_address
    }

    /// The service, for a program that embeds the server.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.app.service
    }

    /// Waits until no client was connected for [`ServeOptions::idle_exit`]; for ever if that is `None`.
    pub async fn idle(&self) {
        let Some(time) = self.idle_exit else {
            return std::future::pending().await;
        };
        let clients = [&self.app.http_connections, &self.app.bus_connections];
        loop {
            for connections in clients {
                connections.all_closed().await;
            }
            let before = clients.map(Connections::opened);
            tokio::time::sleep(time).await;
            let is_quiet = clients.iter().all(|connections| connections.count() == 0);
            if is_quiet && clients.map(Connections::opened) == before {
                return;
            }
        }
    }

    /// What a person should know when the server has started.
    #[must_use]
    pub fn welcome(&self) -> String {
        let http = self.http_address;
        let bus = match self.bus_address {
            Some(address) => format!("ws://{address}"),
            None => "off".to_owned(),
        };
        let kept = &self.kept;
        let socket = match &self.socket {
            Some((path, _)) => format!("  socket {}\n", path.display()),
            None => String::new(),
        };
        let needs_token = !self.app.guard.rules().is_open;
        let curl =
            if needs_token { "curl -H \"authorization: Bearer $BOUGH_TOKEN\"" } else { "curl" };
        let advice = if needs_token { " with a token in BOUGH_TOKEN" } else { "" };
        format!(
            "Bough is listening.\n  HTTP   http://{http}\n{socket}  bus    {bus}\n  data   {kept}\n\n\
             Open http://{http}/ in a browser to see the sessions live, or try{advice}:\n  {curl} \
             http://{http}/v1/sessions\n  {curl} -X PUT http://{http}/v1/sessions/first -H \
             'content-type: application/json' -d '{{\"title\":\"My first\"}}'\n  {curl} -X POST \
             http://{http}/v1/sessions/first/entries -H 'content-type: application/json' -d \
             '{{\"message\":{EXAMPLE_MESSAGE}}}'\n  {curl} -N http://{http}/v1/events?after=start\n  the API: \
             http://{http}/docs\n"
        )
    }

    /// Ends the server: it accepts nothing new, finishes running requests, and closes the store.
    pub async fn stop(mut self) {
        tracing::info!("the server is closing");
        self.switch.begin();
        if let Some(Err(error)) = self.socket.as_ref().map(|(_, claim)| claim.remove_socket()) {
            tracing::warn!(%error, "the socket could not be removed");
        }
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
                tracing::error!(%error, "the positions of bindings were not written; some events come twice");
            }
        }
        if let Err(error) = self.app.service.store().close().await {
            tracing::error!(%error, "the store did not close well; it is recovered at the next start");
        }
        // A connection that is reset may lose its last frames. A peer that does not close is not waited for longer.
        let _ = self.app.bus_closing.drained(BUS_LAST_BYTES_WAIT).await;
        if let Err(error) = self.local_key.remove(&*self.sources_disk) {
            tracing::debug!(%error, "the local key could not be removed");
        }
        if let Some(Err(error)) = self.socket.take().map(|(_, claim)| claim.release()) {
            tracing::debug!(%error, "the lock of the socket could not be removed");
        }
        tracing::info!("closed");
    }
}

fn process_environment() -> Environment {
    Arc::new(|name| std::env::var(name).ok())
}

/// Whether a Unix socket is served and no address was asked for.
fn has_only_socket(options: &ServeOptions) -> bool {
    options.socket.is_some() && options.listen.is_none()
}

fn flags(options: &ServeOptions) -> Overrides {
    let only_socket = |word: &str| has_only_socket(options).then(|| word.to_owned());
    Overrides {
        data_dir: options.data_dir.clone(),
        listen: options.listen.clone().or_else(|| only_socket("127.0.0.1:0")),
        bus: options.bus.clone().or_else(|| only_socket("off")),
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
