use std::path::PathBuf;

use bough_platform::OsDisk;
use bough_server::TokenFile;
use bough_server::config::{ConfigError, DOCUMENTED_FILE, Loaded, hide_secrets, show};
use serde_json::json;

use crate::app::App;
use crate::command_error::{CommandError, CommandResult, ErrorKind};

/// Show or check the configuration
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough config show                what a server would run with
  bough config check --config bough.yaml
  bough config example > config.yaml")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,

    /// The configuration file [default: config.yaml in the data directory]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::Subcommand)]
enum Action {
    /// Print what a server would run with: defaults, file, environment and flags combined
    Show,
    /// Check whether the configuration is valid
    Check,
    /// Print a file with every field, its default and what it means
    Example,
}

pub(crate) fn run(app: &App, args: Args) -> CommandResult<()> {
    if matches!(args.action, Action::Example) {
        let answer = json!({ "example": DOCUMENTED_FILE });
        return app.output.answer(&answer, || app.output.bytes(DOCUMENTED_FILE.as_bytes()));
    }
    app.globals.local_only("config")?;
    let loaded = app.globals.load_config(args.config.as_deref()).map_err(unusable)?;
    match args.action {
        Action::Check => check(app, &loaded),
        _ => print(app, &loaded),
    }
}

fn unusable(error: ConfigError) -> CommandError {
    let is_missing = matches!(
        &error,
        ConfigError::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound
    );
    let kind = if is_missing { ErrorKind::NotFound } else { ErrorKind::Failed };
    CommandError::new(kind, error).hint("`bough config example` shows every field")
}

/// Whether callers need a token there, as the server would decide.
fn has_tokens(loaded: &Loaded) -> CommandResult<bool> {
    match OsDisk::open(&loaded.data_dir) {
        Ok(disk) => {
            let tokens = TokenFile::new(&disk).load().map_err(CommandError::failed)?;
            Ok(tokens.is_some_and(|tokens| tokens.are_in_use()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn check(app: &App, loaded: &Loaded) -> CommandResult<()> {
    loaded.config.check_exposure(has_tokens(loaded)?).map_err(CommandError::failed)?;
    let text = match &loaded.file {
        Some(file) => format!("{} is valid", file.display()),
        None => format!("{} does not exist; the defaults apply", loaded.watched.display()),
    };
    app.output.answer(&json!({ "ok": true, "file": loaded.file }), || app.output.line(text))
}

fn print(app: &App, loaded: &Loaded) -> CommandResult<()> {
    if app.output.is_json() {
        let mut config = serde_json::to_value(&loaded.config)?;
        hide_secrets(&mut config);
        return app.output.json(&json!({
            "config": config, "data_dir": loaded.data_dir, "file": loaded.file,
        }));
    }
    app.output.text(&show(loaded))
}
