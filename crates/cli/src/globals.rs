//! Flags that every command takes.

use std::path::{Path, PathBuf};

use bough_server::config::{ConfigError, Loaded, Overrides, load};

use crate::command_error::{CommandError, CommandResult};
use crate::output::ColorChoice;

/// Flags that every command takes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Globals {
    /// The data directory [default: the user's own]
    #[arg(long, global = true, env = "BOUGH_DATA_DIR", value_name = "DIR")]
    #[arg(help_heading = "Global options", hide_env_values = true)]
    pub(crate) data_dir: Option<PathBuf>,

    /// Use a server instead of a data directory, such as http://127.0.0.1:7717
    #[arg(long, global = true, env = "BOUGH_SERVER", value_name = "URL")]
    #[arg(help_heading = "Global options", hide_env_values = true)]
    pub(crate) server: Option<String>,

    /// The token for the server
    #[arg(long, global = true, env = "BOUGH_TOKEN", value_name = "TOKEN")]
    #[arg(help_heading = "Global options", hide_env_values = true)]
    pub(crate) token: Option<String>,

    /// Print JSON
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,

    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    #[arg(help_heading = "Global options", hide_possible_values = false)]
    pub(crate) color: ColorChoice,
}

impl Globals {
    /// The data directory: as given, or the user's own.
    pub(crate) fn data_dir(&self) -> CommandResult<PathBuf> {
        let given = self.data_dir.clone().filter(|dir| !dir.as_os_str().is_empty());
        given.or_else(bough_platform::user_data_dir).ok_or_else(|| {
            CommandError::usage("there is no home directory for the data directory")
                .hint("name a data directory with --data-dir, or in BOUGH_DATA_DIR")
        })
    }

    /// The configuration that a server would run with: of a named file, or of the data directory's.
    pub(crate) fn load_config(&self, config: Option<&Path>) -> Result<Loaded, ConfigError> {
        let flags = Overrides {
            data_dir: self.data_dir.clone(),
            config: config.map(Path::to_owned),
            ..Overrides::default()
        };
        load(&flags, &|name: &str| std::env::var(name).ok())
    }

    /// The data directory, for commands that do not work through a server.
    pub(crate) fn data_dir_only(&self, command: &str) -> CommandResult<PathBuf> {
        self.local_only(command)?;
        self.data_dir()
    }

    /// Refuses a server, for commands that do not work through one.
    pub(crate) fn local_only(&self, command: &str) -> CommandResult<()> {
        let Some(server) = &self.server else { return Ok(()) };
        let text = format!("`bough {command}` works on a data directory, not through {server}");
        let hint = "run it on the server's machine, without --server and BOUGH_SERVER";
        Err(CommandError::usage(text).hint(hint))
    }
}
