use clap::CommandFactory;
use clap_complete::Shell;

use crate::app::App;
use crate::args::Cli;
use crate::command_error::CommandResult;

/// Print a script that completes commands and flags in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough completions bash > ~/.local/share/bash-completion/completions/bough
  bough completions zsh > ~/.zfunc/_bough
  bough completions fish > ~/.config/fish/completions/bough.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(app: &App, args: &Args) -> CommandResult<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "bough", &mut script);
    let text = String::from_utf8_lossy(&script);
    let answer = serde_json::json!({ "shell": args.shell.to_string(), "script": text });
    app.output.answer(&answer, || app.output.bytes(&script))
}
