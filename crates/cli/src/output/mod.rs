//! The only place that prints. All text is sanitised on the way out.

mod json_members;
mod line;
mod progress;
mod table;

use std::io::{BufRead, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bough_platform::Clock;
use serde::Serialize;
use serde_json::json;

use crate::command_error::{CommandError, CommandResult, ErrorKind};
use crate::text::{Flow, clean_tabbed, clean_text, escape_json};

pub(crate) use json_members::JsonMembers;
pub(crate) use line::{Line, Style};
pub(crate) use progress::Progress;
pub(crate) use table::{Cell, Table};

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Also into files and pipes.
    Always,
    /// Never.
    Never,
}

/// Which of the three streams are terminals, and how wide the window is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    pub(crate) stdin_is_terminal: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
    pub(crate) columns: usize,
    pub(crate) no_color: bool,
}

/// The width of tables on something that is not a terminal: they are not cut.
const WIDE_ENOUGH: usize = 10_000;
/// The width of a terminal that does not report it.
const COLUMNS_DEFAULT: usize = 80;

impl Surroundings {
    /// As this process finds them.
    pub(crate) fn look() -> Self {
        let stdout_is_terminal = std::io::stdout().is_terminal();
        let columns = if stdout_is_terminal {
            let size = ratatui::crossterm::terminal::size();
            size.map_or(COLUMNS_DEFAULT, |(columns, _)| usize::from(columns.max(20)))
        } else {
            WIDE_ENOUGH
        };
        Self {
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stdout_is_terminal,
            stderr_is_terminal: std::io::stderr().is_terminal(),
            columns,
            no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
        }
    }
}

/// Standard output as a writer.
pub(crate) struct BytesOut<'a> {
    output: &'a Output,
}

impl Write for BytesOut<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.output.bytes(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => Err(match error.error.downcast::<std::io::Error>() {
                Ok(error) => *error,
                Err(other) => std::io::Error::other(other),
            }),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.output.lock_out().flush()
    }
}

/// Where a command writes, and where it asks questions.
pub(crate) struct Output {
    json: bool,
    around: Surroundings,
    color_out: bool,
    color_err: bool,
    clock: Arc<dyn Clock>,
    out: Mutex<Box<dyn Write + Send>>,
    err: Arc<Mutex<Box<dyn Write + Send>>>,
    input: Mutex<Box<dyn BufRead + Send>>,
}

impl Output {
    /// The streams of this process.
    pub(crate) fn of_process(json: bool, choice: ColorChoice, clock: Arc<dyn Clock>) -> Self {
        // On a terminal each line is flushed; a pipe gets many at once.
        let out: Box<dyn Write + Send> = match std::io::stdout().is_terminal() {
            true => Box::new(std::io::stdout()),
            false => Box::new(std::io::BufWriter::new(std::io::stdout())),
        };
        let streams = (
            out,
            Box::new(std::io::stderr()) as Box<dyn Write + Send>,
            Box::new(std::io::BufReader::new(std::io::stdin())) as Box<dyn BufRead + Send>,
        );
        Self::new(json, choice, clock, Surroundings::look(), streams)
    }

    fn new(
        json: bool,
        choice: ColorChoice,
        clock: Arc<dyn Clock>,
        around: Surroundings,
        (out, err, input): (Box<dyn Write + Send>, Box<dyn Write + Send>, Box<dyn BufRead + Send>),
    ) -> Self {
        let color = |is_terminal: bool| match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !around.no_color,
        };
        Self {
            json,
            around,
            color_out: color(around.stdout_is_terminal),
            color_err: color(around.stderr_is_terminal),
            clock,
            out: Mutex::new(out),
            err: Arc::new(Mutex::new(err)),
            input: Mutex::new(input),
        }
    }

    /// Whether the answer is to be JSON.
    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person can press keys and see a screen, which is drawn on standard error.
    pub(crate) const fn can_show_screens(&self) -> bool {
        self.around.stdin_is_terminal && self.around.stderr_is_terminal
    }

    /// Whether screens may use colours.
    pub(crate) const fn screens_have_color(&self) -> bool {
        self.color_err
    }

    /// One line of the answer.
    pub(crate) fn line(&self, line: impl Into<Line>) -> CommandResult<()> {
        let text = line.into().render(self.color_out);
        self.write_out(format!("{text}\n").as_bytes())
    }

    /// Prints several lines of the answer, sanitised.
    pub(crate) fn text(&self, text: &str) -> CommandResult<()> {
        // A program that reads the answer gets the tabs.
        let clean =
            if self.around.stdout_is_terminal { clean_text(text) } else { clean_tabbed(text) };
        self.write_out(format!("{}\n", clean.trim_end_matches('\n')).as_bytes())
    }

    /// A writer for text that is indented and wrapped to the window, at once or as it arrives.
    pub(crate) fn flow(&self) -> Flow {
        Flow::new(self.around.stdout_is_terminal.then_some(self.around.columns))
    }

    /// Prints the next part of a flowing text, sanitised.
    pub(crate) fn add_to(&self, flow: &mut Flow, text: &str) -> CommandResult<()> {
        self.add_styled_to(flow, Style::Plain, text)
    }

    /// Prints the next part of a flowing text in a style, sanitised.
    pub(crate) fn add_styled_to(
        &self,
        flow: &mut Flow,
        style: Style,
        text: &str,
    ) -> CommandResult<()> {
        let text = flow.add(&clean_tabbed(text));
        // The indent is no part of the text.
        let styled = text.trim_start();
        let mut out = text.strip_suffix(styled).unwrap_or_default().to_owned();
        style.push_to(&mut out, styled, self.color_out);
        self.write_out(out.as_bytes())
    }

    /// Ends the line that a text stopped in.
    pub(crate) fn finish(&self, flow: &mut Flow) -> CommandResult<()> {
        self.write_out(flow.finish().as_bytes())
    }

    /// How wide a line may be.
    pub(crate) const fn columns(&self) -> usize {
        self.around.columns
    }

    /// A table, cut to the window.
    pub(crate) fn table(&self, table: &Table) -> CommandResult<()> {
        for line in table.lines(self.around.columns) {
            self.line(line)?;
        }
        Ok(())
    }

    /// The answer: one JSON document with `--json`, or else what `text` prints.
    pub(crate) fn answer(
        &self,
        value: &impl Serialize,
        text: impl FnOnce() -> CommandResult<()>,
    ) -> CommandResult<()> {
        if self.json { self.json(value) } else { text() }
    }

    /// The answer as one JSON document.
    pub(crate) fn json(&self, value: &impl Serialize) -> CommandResult<()> {
        let text = serde_json::to_string_pretty(value)?;
        self.write_out(format!("{}\n", escape_json(&text)).as_bytes())
    }

    /// The answer as one JSON document that is printed as it is made.
    pub(crate) const fn json_members(&self) -> JsonMembers<'_> {
        JsonMembers::new(self)
    }

    /// Prints one JSON document on a line of its own, for answers that go on.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> CommandResult<()> {
        let text = serde_json::to_string(value)?;
        self.write_out(format!("{}\n", escape_json(&text)).as_bytes())?;
        Ok(self.lock_out().flush()?)
    }

    /// Prints bytes as they are, for files of other programs. On a terminal they are sanitised.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> CommandResult<()> {
        if self.around.stdout_is_terminal {
            let text = String::from_utf8_lossy(bytes);
            return self.write_out(clean_text(&text).as_bytes());
        }
        self.write_out(bytes)
    }

    /// A writer for bytes as they are, piece by piece. On a terminal they are sanitised.
    pub(crate) const fn writer(&self) -> BytesOut<'_> {
        BytesOut { output: self }
    }

    /// Prints a remark beside the answer: what was done, what to try next. Silent with `--json`.
    pub(crate) fn note(&self, line: impl Into<Line>) {
        if !self.json {
            self.write_err(&line.into().render(self.color_err));
        }
    }

    /// Prints a warning; also with `--json`, since it is not part of the answer.
    pub(crate) fn warn(&self, text: &str) {
        let line = Line::of(Style::Warning, "warning: ").plain(text);
        self.write_err(&line.render(self.color_err));
    }

    /// Prints why the command failed, and the next steps.
    pub(crate) fn error(&self, error: &CommandError) {
        if error.kind == ErrorKind::ClosedPipe {
            return;
        }
        if self.json {
            let value = json!({ "error": {
                "kind": error.kind.as_str(),
                "message": error.to_string(),
                "hints": error.hints,
            }});
            self.write_err(&escape_json(&value.to_string()));
            return;
        }
        let line = Line::of(Style::Error, "error: ").plain(error.to_string());
        self.write_err(&line.render(self.color_err));
        for hint in &error.hints {
            let line = Line::of(Style::Dim, "hint: ").plain(hint);
            self.write_err(&line.render(self.color_err));
        }
    }

    /// Asks yes or no; Enter means no. If there is no terminal to answer on, returns an error that names the flag for it.
    pub(crate) fn confirm(&self, question: &str, flag: &str) -> CommandResult<bool> {
        if !self.around.stdin_is_terminal {
            let text = format!("this command asks for confirmation: {question}");
            return Err(CommandError::usage(text).hint(format!("pass {flag} to answer yes")));
        }
        {
            let mut err = self.err.lock().unwrap_or_else(PoisonError::into_inner);
            write!(err, "{} [y/N] ", Line::from(question).render(self.color_err))?;
            err.flush()?;
        }
        let mut answer = String::new();
        self.input.lock().unwrap_or_else(PoisonError::into_inner).read_line(&mut answer)?;
        Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    /// A progress bar for long work; invisible if standard error is not a terminal.
    pub(crate) fn progress(&self, what: &str) -> Progress {
        let visible = self.around.stderr_is_terminal && !self.json;
        let err = visible.then(|| self.err.clone());
        // Standard error may be a terminal where the output is not, so that its width is not known.
        let is_known = self.around.stdout_is_terminal;
        let columns = if is_known { self.around.columns } else { COLUMNS_DEFAULT };
        Progress::new(what, err, self.clock.clone(), columns)
    }

    fn write_out(&self, bytes: &[u8]) -> CommandResult<()> {
        Ok(self.lock_out().write_all(bytes)?)
    }

    fn lock_out(&self) -> MutexGuard<'_, Box<dyn Write + Send>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_err(&self, line: &str) {
        let mut err = self.err.lock().unwrap_or_else(PoisonError::into_inner);
        // There is nowhere else to report a failure of standard error.
        drop(writeln!(err, "{line}"));
    }

    /// Flushes the output.
    pub(crate) fn flush(&self) -> CommandResult<()> {
        Ok(self.lock_out().flush()?)
    }
}
