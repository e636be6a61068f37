use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use bough_platform::{Clock, Entropy, OsEntropy, SystemClock};
use clap::{CommandFactory, Parser};

use crate::args::Cli;
use crate::backend::Backend;
use crate::command_error::{CommandError, CommandResult};
use crate::globals::Globals;
use crate::output::{ColorChoice, Output};

/// The context of every command.
pub(crate) struct App {
    pub(crate) globals: Globals,
    pub(crate) output: Output,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

impl App {
    /// Opens the backend, runs `work` with it, and closes it whatever the result.
    pub(crate) async fn with_backend<T>(
        &self,
        work: impl AsyncFnOnce(&Backend) -> CommandResult<T>,
    ) -> CommandResult<T> {
        let backend = Backend::open(&self.globals).await?;
        if let Backend::Local(local) = &backend {
            local.recovered().iter().for_each(|text| self.output.warn(text));
        }
        let done = work(&backend).await;
        let closed = backend.close().await;
        let answer = done?;
        closed?;
        Ok(answer)
    }

    /// Wall time in milliseconds since the epoch.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }
}

/// Runs the command that `args` (the program's name first) ask for.
#[must_use]
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let mut cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return explain(&error, &args, clock),
    };
    let (command, is_manifest) = (cli.take_command(), cli.manifest);
    let globals = cli.globals;
    let output = Output::of_process(globals.json, globals.color, clock.clone());
    let app = App { globals, output, clock, entropy: Arc::new(OsEntropy) };
    if is_manifest {
        let manifest = format!("{:#}\n", bough_server::worker_manifest());
        drop(app.output.text(&manifest));
        return ExitCode::SUCCESS;
    }
    let Some(command) = command else {
        let help = Cli::command().render_help().to_string();
        drop(app.output.text(&help));
        return ExitCode::from(2);
    };
    let done = block_on(crate::commands::run(&app, command));
    // Output from before a failure is part of the answer.
    let flushed = app.output.flush();
    match done.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            app.output.error(&error);
            ExitCode::from(error.kind.exit_code())
        }
    }
}

fn block_on(work: impl Future<Output = CommandResult<()>>) -> CommandResult<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(CommandError::from)?;
    let done = runtime.block_on(work);
    // A request for events may still be waiting for an answer that is not needed any more.
    runtime.shutdown_background();
    done
}

/// Shows help, the version, or what is wrong with the command line.
fn explain(error: &clap::Error, args: &[OsString], clock: Arc<dyn Clock>) -> ExitCode {
    let json = error.use_stderr() && args.iter().any(|arg| arg == "--json");
    if json {
        let output = Output::of_process(true, ColorChoice::Never, clock);
        let text = error.to_string();
        // The text after the first paragraph is help for people.
        let first = text.split("\n\n").next().unwrap_or_default();
        let message = first.trim_start_matches("error: ").trim().to_owned();
        output.error(&CommandError::usage(message).hint("`bough help` shows the commands"));
    } else {
        drop(error.print());
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
