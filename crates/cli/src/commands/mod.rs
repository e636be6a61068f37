//! One file a command: its arguments, whose doc comments are the help, and its work.

pub(crate) mod archive;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod demo;
pub(crate) mod export;
pub(crate) mod fork;
pub(crate) mod health;
pub(crate) mod label;
pub(crate) mod ls;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod record;
pub(crate) mod rename;
pub(crate) mod replay;
pub(crate) mod restore;
pub(crate) mod resume;
pub(crate) mod rm;
pub(crate) mod rollback;
pub(crate) mod salvage;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod tail;
pub(crate) mod token;
pub(crate) mod tree;
pub(crate) mod usage;
pub(crate) mod verify;

mod print;

use crate::app::App;
use crate::args::Command;
use crate::command_error::CommandResult;

/// Runs a command.
pub(crate) async fn run(app: &App, command: Command) -> CommandResult<()> {
    match command {
        Command::Ls(args) => ls::run(app, args).await,
        Command::Resume(args) => resume::run(app, args).await,
        Command::Show(args) => show::run(app, args).await,
        Command::Search(args) => search::run(app, args).await,
        Command::Reindex(args) => search::reindex(app, args).await,
        Command::Tail(args) => tail::run(app, args).await,
        Command::Tree(args) => tree::run(app, args).await,
        Command::Fork(args) => fork::run(app, args).await,
        Command::Label(args) => label::run(app, args).await,
        Command::Rename(args) => rename::run(app, args).await,
        Command::Archive(args) => archive::archive(app, args).await,
        Command::Unarchive(args) => archive::unarchive(app, args).await,
        Command::Rm(args) => rm::run(app, args).await,
        Command::Restore(args) => restore::run(app, args).await,
        Command::Usage(args) => usage::run(app, args).await,
        Command::Context(args) => context::run(app, args).await,
        Command::Compact(args) => compact::run(app, args).await,
        Command::Export(args) => export::run(app, args).await,
        Command::Migrate(args) => migrate::run(app, args).await,
        Command::Rollback(args) => rollback::run(app, args).await,
        Command::Verify(args) => verify::run(app, args).await,
        Command::Salvage(args) => salvage::run(app, args).await,
        Command::Record(args) => record::run(app, args).await,
        Command::Replay(args) => replay::run(app, args).await,
        Command::Serve(args) => serve::run(app, args).await,
        Command::Health(args) => health::run(app, args).await,
        Command::Mcp(args) => mcp::run(app, args).await,
        Command::Demo(args) => demo::run(app, args).await,
        Command::Token(args) => token::run(app, args),
        Command::Config(args) => config::run(app, args),
        Command::Completions(args) => completions::run(app, &args),
    }
}
