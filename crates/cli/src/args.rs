//! The command line as it is typed.

use clap::{Parser, Subcommand};

use crate::command_error::EXIT_CODES;
use crate::commands;
use crate::globals::Globals;

/// The session store for AI agents.
///
/// Sessions live in a data directory. Commands work on it directly or, when a server holds a session,
/// through that server; `--server` names a server elsewhere.
///
/// Where a SESSION is asked for, give its id, a unique beginning of it, its title, or `last` for the one that
/// changed last; or a session file of pi, which is then read and written as it is.
#[derive(Debug, Parser)]
#[command(name = "bough", version, max_term_width = 100, propagate_version = false)]
#[command(after_help = EXAMPLES, after_long_help = LONG_AFTER.as_str())]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,

    /// Pick a session to resume, as `bough resume` does
    #[arg(short = 'r', long = "resume", exclusive = false)]
    pub(crate) resume: bool,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  bough ls                     the sessions that changed last
  bough -r                     pick one
  bough show last              read the newest
  bough search flaky test      find what was said about it
  bough tail -f last           follow it while it is written
  bough tree last              walk its branches
  bough migrate ~/.pi          bring sessions in from elsewhere
  bough serve                  serve them over HTTP

`bough COMMAND --help` says more about each.";

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
    Token(commands::token::Args),
    Config(commands::config::Args),
    Completions(commands::completions::Args),
}

/// What `bough -r` means.
pub(crate) fn resume() -> Command {
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
