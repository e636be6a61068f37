//! Where the text of a summary comes from: a file, a program, or the fixed rules of the digest.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use async_trait::async_trait;
use bough_service::api::CompactionResponse;
use bough_service::compaction::{
    CompactionSettings, NoSummary, PathItem, Summariser, branch_digest, conversation_text,
};

use crate::command_error::{CommandError, CommandResult};
use crate::files;
use crate::globals::Globals;
use crate::limits::{FILE_BYTES_MAX, SUMMARY_BYTES_MAX};

/// The configuration of compaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Configured {
    pub(crate) settings: CompactionSettings,
    /// The program that writes summaries, with its arguments; empty when there is none.
    pub(crate) command: Vec<String>,
}

impl Configured {
    /// Reads the configuration of the data directory. With a server elsewhere, the defaults.
    pub(crate) fn load(globals: &Globals) -> CommandResult<Self> {
        Self::load_from(globals, None)
    }

    /// The same with a configuration file that was named.
    pub(crate) fn load_from(globals: &Globals, config: Option<&Path>) -> CommandResult<Self> {
        if globals.server.is_some() {
            return Ok(Self::default());
        }
        let loaded = globals.load_config(config).map_err(|error| {
            CommandError::failed(error).hint("`bough config check` shows what is wrong")
        })?;
        let compaction = loaded.config.compaction;
        Ok(Self { settings: compaction.settings(), command: compaction.command })
    }

    /// The default source of summaries: the program, or the fixed rules if there is none.
    pub(crate) fn source(&self, focus: Option<String>) -> SummarySource {
        if self.command.is_empty() {
            return SummarySource::Digest;
        }
        SummarySource::command(self.command.clone(), focus)
    }
}

/// Where the text of a summary comes from.
#[derive(Clone, Debug)]
pub(crate) enum SummarySource {
    /// The fixed rules.
    Digest,
    /// This text.
    Text(String),
    /// A program that reads the conversation and prints the summary.
    Command { command: Vec<String>, focus: Option<String> },
}

impl SummarySource {
    /// The text of a file; `-` is standard input.
    pub(crate) fn from_file(path: &Path) -> CommandResult<Self> {
        let text = if path == Path::new("-") {
            let mut text = String::new();
            std::io::stdin().lock().take(FILE_BYTES_MAX).read_to_string(&mut text)?;
            text
        } else {
            files::read_text(path)?
        };
        let text = text.trim().to_owned();
        if text.is_empty() {
            return Err(CommandError::usage("the summary is empty"));
        }
        Ok(Self::Text(text))
    }

    pub(crate) const fn command(command: Vec<String>, focus: Option<String>) -> Self {
        Self::Command { command, focus }
    }

    /// The summary of a conversation; `None` if the fixed rules write it.
    pub(crate) async fn text(&self, conversation: &str) -> CommandResult<Option<String>> {
        match self {
            Self::Digest => Ok(None),
            Self::Text(text) => Ok(Some(text.clone())),
            Self::Command { command, focus } => {
                run(command, conversation.to_owned(), focus.clone()).await.map(Some)
            }
        }
    }

    /// Whether the text depends on the conversation.
    pub(crate) const fn reads_conversation(&self) -> bool {
        matches!(self, Self::Command { .. })
    }
}

/// The summary of the branch that is left.
pub(crate) async fn summarise_branch(
    items: &[PathItem],
    source: &SummarySource,
) -> CommandResult<String> {
    let text = source.text(&conversation_text(items)).await?;
    Ok(text.unwrap_or_else(|| branch_digest(items)))
}

/// Writes the summaries of a server, as its configuration says at that time.
pub(crate) struct ConfiguredSummariser<'a> {
    pub(crate) globals: &'a Globals,
    /// The configuration file that was named.
    pub(crate) config: Option<&'a Path>,
}

#[async_trait]
impl Summariser for ConfiguredSummariser<'_> {
    async fn summarise(&self, plan: &CompactionResponse) -> Result<Option<String>, NoSummary> {
        let configured = Configured::load_from(self.globals, self.config).map_err(|_| NoSummary)?;
        let conversation = plan.conversation.as_deref().unwrap_or_default();
        configured.source(None).text(conversation).await.map_err(|_| NoSummary)
    }
}

async fn run(command: &[String], input: String, focus: Option<String>) -> CommandResult<String> {
    let command = command.to_vec();
    let ran = tokio::task::spawn_blocking(move || run_blocking(&command, input, focus)).await;
    ran.map_err(CommandError::failed)?
}

fn run_blocking(command: &[String], input: String, focus: Option<String>) -> CommandResult<String> {
    let failed = |text: String| {
        CommandError::failed(text)
            .hint("the command reads the conversation on its standard input and prints the summary")
            .hint("--digest needs no command")
    };
    let (program, arguments) =
        command.split_first().ok_or_else(|| failed("the summary command is empty".to_owned()))?;
    let mut child = Command::new(program)
        .args(arguments)
        .env("BOUGH_SUMMARY_FOCUS", focus.unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("{program} cannot be run: {error}")))?;
    let stdin = child.stdin.take();
    let writer = std::thread::spawn(move || {
        // The program need not read everything.
        stdin.map(|mut stdin| stdin.write_all(input.as_bytes()))
    });
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(SUMMARY_BYTES_MAX as u64 + 1).read_to_end(&mut output)?;
    }
    if output.len() > SUMMARY_BYTES_MAX {
        drop(child.kill());
        drop(child.wait());
        return Err(failed(format!("{program} printed more than {SUMMARY_BYTES_MAX} bytes")));
    }
    let status = child.wait()?;
    drop(writer.join());
    if !status.success() {
        return Err(failed(format!("{program} ended with {status}")));
    }
    let text = String::from_utf8_lossy(&output).trim().to_owned();
    if text.is_empty() {
        return Err(failed(format!("{program} printed nothing")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_program_reads_the_conversation_and_prints_the_summary() {
        let command = sh("printf '%s: ' \"$BOUGH_SUMMARY_FOCUS\"; cat");
        let text = run_blocking(&command, "[User]: hi\n".to_owned(), Some("greetings".to_owned()));
        assert_eq!(text.unwrap(), "greetings: [User]: hi");
    }

    #[test]
    fn a_program_that_does_not_read_or_fails() {
        let check = |script: &str, expected: &str| {
            let large = "x".repeat(1 << 20);
            let error = run_blocking(&sh(script), large, None).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert!(!error.hints.is_empty());
        };
        check("exit 3", "ended with");
        check("true", "printed nothing");
        let done = run_blocking(&sh("echo short"), "x".repeat(1 << 20), None);
        assert_eq!(done.unwrap(), "short");
        let missing = run_blocking(&["/no/such/program".to_owned()], String::new(), None);
        assert!(missing.unwrap_err().to_string().contains("cannot be run"));
    }
}
