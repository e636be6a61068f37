use std::path::PathBuf;

use bough_server::config::LogFormat;
use bough_server::{ServeOptions, run as run_server, shutdown_on_signals};

use crate::app::App;
use crate::command_error::{CommandError, CommandResult};
use crate::engine_link;

/// Serve the sessions over HTTP, as live streams, and on the bus
///
/// Listens on this machine only unless tokens exist (`bough token create`).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough serve
  bough serve --listen 127.0.0.1:8080 --bus off
  bough serve --data-dir ./data --log json
  bough serve --config bough.yaml
  bough serve --engine ws://127.0.0.1:49134 --bus off")]
pub(crate) struct Args {
    /// Where HTTP is served [default: 127.0.0.1:7717]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,

    /// Where the bus is served, or `off` [default: 127.0.0.1:49134]
    #[arg(long, value_name = "HOST:PORT|off")]
    bus: Option<String>,

    /// Attach to an iii engine as a worker
    #[arg(long, visible_alias = "url", value_name = "ws://HOST:PORT")]
    engine: Option<String>,

    /// The configuration file [default: config.yaml in the data directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// How log lines look
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    log: Option<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    let log = args.log.as_deref().map(|word| match word {
        "json" => LogFormat::Json,
        _ => LogFormat::Text,
    });
    let options = ServeOptions {
        data_dir: app.globals.data_dir.clone(),
        listen: args.listen,
        bus: args.bus,
        engine: args.engine,
        config: args.config,
        log,
        connect: Some(engine_link::connector()),
        ..ServeOptions::default()
    };
    run_server(options, shutdown_on_signals()).await.map_err(CommandError::failed)
}
