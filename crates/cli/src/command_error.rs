//! Errors for people: a kind that decides the exit code, the error, and the next steps.

use std::error::Error;
use std::fmt;

/// How a command failed. The exit code follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// Something went wrong.
    Failed,
    /// The command line has to be changed.
    Usage,
    /// There is no such session, entry or file.
    NotFound,
    /// Another process is writing there, or was faster.
    Conflict,
    /// What is stored is damaged.
    Damaged,
    /// A token or a scope does not allow it.
    Forbidden,
    /// The server does not answer.
    Unreachable,
    /// The person answered no, or pressed Ctrl-C.
    Cancelled,
    /// The reader of our output closed the pipe.
    ClosedPipe,
}

impl ErrorKind {
    /// The exit code, as `bough help` documents it.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::ClosedPipe => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Conflict => 4,
            Self::Damaged => 5,
            Self::Forbidden => 6,
            Self::Unreachable => 7,
            Self::Cancelled => 130,
        }
    }

    /// The kind's name in JSON.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Damaged => "damaged",
            Self::Forbidden => "forbidden",
            Self::Unreachable => "unreachable",
            Self::Cancelled => "cancelled",
            Self::ClosedPipe => "closed_pipe",
        }
    }
}

/// The text that `bough help` shows about exit codes.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    failed
  2    wrong usage: a flag or an argument must be changed
  3    no such session, entry or file
  4    conflict: another process holds the session, or changed it first
  5    stored data is damaged
  6    not allowed
  7    the server does not answer
  130  cancelled";

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// What kind of failure.
    pub(crate) kind: ErrorKind,
    /// What happened.
    pub(crate) error: Box<dyn Error + Send + Sync>,
    /// What to do next, the most likely first.
    pub(crate) hints: Vec<String>,
}

/// The result of a command, or of a part of one.
pub(crate) type CommandResult<T> = Result<T, CommandError>;

impl CommandError {
    pub(crate) fn new(kind: ErrorKind, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, error: error.into(), hints: Vec::new() }
    }

    pub(crate) fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Failed, error)
    }

    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, text.into())
    }

    pub(crate) fn not_found(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, text.into())
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "cancelled; nothing was changed")
    }

    /// Adds a next step.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        self.maybe_hint(Some(hint))
    }

    /// Adds a next step, if there is one.
    pub(crate) fn maybe_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hints.extend(hint.map(Into::into));
        self
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.error.to_string();
        let mut source = self.error.source();
        while let Some(error) = source {
            let cause = error.to_string();
            // Some errors already include their cause.
            if !text.contains(&cause) {
                text = format!("{text}: {cause}");
            }
            source = error.source();
        }
        f.write_str(&text)
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            std::io::ErrorKind::BrokenPipe => ErrorKind::ClosedPipe,
            std::io::ErrorKind::Interrupted => ErrorKind::Cancelled,
            std::io::ErrorKind::PermissionDenied => ErrorKind::Forbidden,
            _ => ErrorKind::Failed,
        };
        Self::new(kind, error)
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        Self::failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Outer {
        text: &'static str,
        source: std::io::Error,
    }

    #[test]
    fn a_cause_is_printed_once() {
        let text = |outer| {
            let source = std::io::Error::other("disk full");
            CommandError::failed(Outer { text: outer, source }).to_string()
        };
        assert_eq!(text("cannot write"), "cannot write: disk full");
        assert_eq!(
            text("cannot write (disk full); make some"),
            "cannot write (disk full); make some"
        );
    }
}
