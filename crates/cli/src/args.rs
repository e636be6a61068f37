//! The command line as it is typed.

use clap::{Parser, Subcommand};

use crate::command_error::EXIT_CODES;
use crate::commands;
use crate::globals::Globals;

/// The session store for AI agents.
///
/// Bough keeps sessions in a data directory. A command opens the directory itself; where a running server holds a
/// session, the command goes through that server. `--server` uses a server on another machine.
///
/// SESSION is a session's id, a beginning of an id that no other session has, a title, or `last` for the session that
/// changed last. It can also be the path of a pi session file, which is then read and written in place.
#[derive(Debug, Parser)]
// The help shows the installed name of the program, whatever the name of the started file is.
#[command(name = "bough", bin_name = "bough", version)]
#[command(max_term_width = 100, propagate_version = false)]
#[command(after_help = EXAMPLES, after_long_help = LONG_AFTER.as_str())]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,

    /// Pick a session and open it, as `bough resume` does
    #[arg(short = 'r', long = "resume", exclusive = false)]
    pub(crate) resume: bool,

    /// Run as a worker of the iii engine at this address, as the engine starts one
    #[arg(
        long,
        value_name = "ws://HOST:PORT",
        conflicts_with = "resume",
        help_heading = "As an iii worker"
    )]
    pub(crate) url: Option<String>,

    /// Settings for the first start as a worker
    #[arg(long, value_name = "FILE", requires = "url", help_heading = "As an iii worker")]
    pub(crate) config: Option<std::path::PathBuf>,

    /// Print the worker's manifest as JSON
    #[arg(long, help_heading = "As an iii worker")]
    pub(crate) manifest: bool,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  bough ls                     list the sessions that changed last
  bough -r                     pick a session and open it
  bough show last              read the newest session
  bough search flaky test      find messages about it
  bough tail -f last           follow it while it is written
  bough tree last              walk its branches
  bough migrate ~/.pi          bring in the sessions of pi
  bough serve                  serve the sessions over HTTP

`bough COMMAND --help` describes a command.";

static LONG_AFTER: std::sync::LazyLock<String> =
    std::sync::LazyLock::new(|| format!("{EXAMPLES}\n\n{EXIT_CODES}"));

/// One command, in a file of its own.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Ls(commands::ls::Args),
    Resume(commands::resume::Args),
    Show(commands::show::Args),
    Search(commands::search::Args),
    Reindex(commands::search::ReindexArgs),
    Tail(commands::tail::Args),
    Tree(commands::tree::Args),
    Fork(commands::fork::Args),
    Label(commands::label::Args),
    Rename(commands::rename::Args),
    Archive(commands::archive::ArchiveArgs),
    Unarchive(commands::archive::UnarchiveArgs),
    Rm(commands::rm::Args),
    #[command(visible_alias = "undo")]
    Restore(commands::restore::Args),
    Usage(commands::usage::Args),
    Context(commands::context::Args),
    Compact(commands::compact::Args),
    Export(commands::export::Args),
    #[command(visible_alias = "import")]
    Migrate(commands::migrate::Args),
    Rollback(commands::rollback::Args),
    Verify(commands::verify::Args),
    Salvage(commands::salvage::Args),
    Record(commands::record::Args),
    Replay(commands::replay::Args),
    Serve(commands::serve::Args),
    Health(commands::health::Args),
    Mcp(commands::mcp::Args),
    Demo(commands::demo::Args),
    Token(commands::token::Args),
    Config(commands::config::Args),
    Completions(commands::completions::Args),
}

impl Cli {
    /// The requested command, by its name or by a flag that means the same.
    pub(crate) fn take_command(&mut self) -> Option<Command> {
        let named = self.command.take().or_else(|| self.resume.then(resume));
        named.or_else(|| {
            let url = self.url.take()?;
            Some(Command::Serve(commands::serve::Args::as_worker(url, self.config.take())))
        })
    }
}

/// What `bough -r` means.
fn resume() -> Command {
    Command::Resume(commands::resume::Args::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_engine_starts_a_worker_with_its_address_alone() {
        let mut cli =
            Cli::try_parse_from(["session-manager", "--url", "ws://127.0.0.1:49134"]).unwrap();
        assert!(matches!(cli.take_command(), Some(Command::Serve(_))));
        assert!(Cli::try_parse_from(["bough", "--config", "x.yaml"]).is_err());
        let mut seeded =
            Cli::try_parse_from(["bough", "--url", "ws://h:1", "--config", "x.yaml"]).unwrap();
        assert!(matches!(seeded.take_command(), Some(Command::Serve(_))));
        let mut manifest = Cli::try_parse_from(["bough", "--manifest"]).unwrap();
        assert!(manifest.manifest && manifest.take_command().is_none());
    }

    #[test]
    fn the_help_names_the_program_whatever_the_file_is_called() {
        for words in [&["b-1.exe", "--help"][..], &["/opt/b", "ls", "--help"]] {
            let help = Cli::try_parse_from(words).unwrap_err().to_string();
            assert!(help.contains("Usage: bough "), "{help}");
        }
    }

    #[test]
    fn every_command_says_what_it_does_and_shows_an_example() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} says nothing about itself");
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Examples:"), "{name} has no examples");
            assert!(after.contains("bough "), "{name} has no example that can be typed");
        }
    }
}
