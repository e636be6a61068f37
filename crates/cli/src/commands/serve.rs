use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bough_migrate::{OsV1Files, ServedStore};
use bough_platform::Platform;
use bough_server::config::LogFormat;
use bough_server::{EngineConnector, ServeError, ServeOptions, Server, shutdown_on_signals};
use bough_service::compaction::keep_compacted;
use bough_store::{NativeStore, Store, StoreError};

use crate::app::App;
use crate::backend::{Backend, Local};
use crate::command_error::{CommandError, CommandResult, ErrorKind};
use crate::demo::Demo;
use crate::files::TempDir;
use crate::summarise::ConfiguredSummariser;

/// Serve the sessions over HTTP, as live streams, and on the bus
///
/// Listens on this machine only, unless there is a token (`bough token create`).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough serve
  bough serve --listen 127.0.0.1:8080 --bus off
  bough serve --data-dir ./data --log json
  bough serve --config bough.yaml
  bough serve --socket ./bough.sock --idle-exit 60
  bough serve --engine ws://127.0.0.1:49134 --bus off
  bough serve --demo")]
pub(crate) struct Args {
    /// The address for HTTP [default: 127.0.0.1:7717]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,

    /// The address for the bus, or `off` [default: 127.0.0.1:49134]
    #[arg(long, value_name = "HOST:PORT|off")]
    bus: Option<String>,

    /// Serve HTTP on a Unix socket to this user, without tokens; --listen and --bus then serve only where they are given
    ///
    /// If another server has the socket already, the command fails with exit code 4.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Exit this many seconds after the last client has disconnected
    #[arg(long, value_name = "SECONDS")]
    idle_exit: Option<u64>,

    /// Attach to an iii engine as a worker
    #[arg(long, visible_alias = "url", value_name = "ws://HOST:PORT")]
    engine: Option<String>,

    /// The configuration file [default: config.yaml in the data directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Serve sessions of an agent at work in a temporary directory, which is removed at the end
    #[arg(long, conflicts_with_all = ["socket", "engine", "config"])]
    demo: bool,

    /// The format of log lines
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    log: Option<String>,
}

impl Args {
    /// The options for an engine that starts this program as its worker: no bus of its own, and a free port.
    pub(crate) fn as_worker(url: String, config: Option<PathBuf>) -> Self {
        Self {
            listen: Some("127.0.0.1:0".to_owned()),
            bus: Some("off".to_owned()),
            socket: None,
            idle_exit: None,
            engine: Some(url),
            config,
            demo: false,
            log: None,
        }
    }
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.globals.local_only("serve")?;
    let log = args.log.as_deref().map(|word| match word {
        "json" => LogFormat::Json,
        _ => LogFormat::Text,
    });
    let temporary = if args.demo { Some(TempDir::new(&*app.entropy)?) } else { None };
    let data_dir = temporary.as_ref().map(TempDir::path).or_else(|| app.globals.data_dir.clone());
    let options = ServeOptions {
        data_dir,
        listen: args.listen,
        bus: args.bus,
        socket: args.socket,
        idle_exit: args.idle_exit.map(Duration::from_secs),
        engine: args.engine,
        config: args.config,
        log,
        wrap_native: Some(Arc::new(with_files)),
        connect: engine_connector(),
        ..ServeOptions::default()
    };
    serve(app, options, args.demo).await
}

/// How to reach an iii engine, in a program that was built with its SDK.
#[cfg(feature = "engine")]
fn engine_connector() -> Option<EngineConnector> {
    Some(crate::engine_link::connector())
}

#[cfg(not(feature = "engine"))]
fn engine_connector() -> Option<EngineConnector> {
    None
}

/// Serves until a signal; background work runs beside it.
async fn serve(app: &App, options: ServeOptions, demo: bool) -> CommandResult<()> {
    let config = options.config.clone();
    let shutdown = shutdown_on_signals();
    let server = Server::start(options).await.map_err(not_started)?;
    app.output.text(&server.welcome())?;
    app.output.flush()?;
    let service = server.service().clone();
    let backend = Backend::Local(Local::of_service(service.clone()));
    let summariser = ConfiguredSummariser { globals: &app.globals, config: config.as_deref() };
    let ended = tokio::select! {
        () = shutdown.begun() => Ok(()),
        () = server.idle() => Ok(()),
        never = keep_compacted(&service, &summariser) => match never {},
        Err(error) = play_demo(app, &backend), if demo => Err(error),
    };
    server.stop().await;
    ended
}

/// Fills the store, then shows an agent at work again and again.
async fn play_demo(app: &App, backend: &Backend) -> CommandResult<()> {
    let demo = Demo::read()?;
    demo.fill(app, backend).await?;
    demo.play_rounds(app, backend).await
}

fn not_started(error: ServeError) -> CommandError {
    match error {
        ServeError::SocketServed { .. } => CommandError::new(ErrorKind::Conflict, error),
        _ => CommandError::failed(error),
    }
}

/// Serves sessions that were not migrated, or were rolled back, from their files.
fn with_files(native: NativeStore, platform: Platform) -> Result<Arc<dyn Store>, StoreError> {
    let served = ServedStore::over(native, platform, Arc::new(OsV1Files));
    served.recover_now()?;
    Ok(Arc::new(served))
}
