use std::sync::Arc;

use bough_service::ServiceError;
use bough_store::StoreError;
use serde_json::Value;

use crate::command_error::{CommandError, ErrorKind};

/// Why a call failed, in this process or at a server.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CallError {
    /// The stable code, such as `session/not_found`.
    pub(crate) code: String,
    /// What happened.
    pub(crate) message: String,
    /// The next step, if the code does not imply it.
    hint: Option<&'static str>,
    kind: ErrorKind,
}

impl CallError {
    fn new(kind: ErrorKind, code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), hint: None, kind }
    }

    /// An answer that does not match the table. A server of another version may send one.
    pub(crate) fn shape(error: &serde_json::Error) -> Self {
        let message = format!("the answer has an unexpected form ({error})");
        let hint = Some("use the same version of bough on both sides");
        Self { hint, ..Self::new(ErrorKind::Failed, "cli/unexpected_answer", message) }
    }

    /// The server did not answer.
    pub(super) fn unreachable(server: &str, reason: &str) -> Self {
        let message = format!("no answer from {server}: {reason}");
        let hint =
            Some("see that the server runs, or leave --server out to use the data directory");
        Self { hint, ..Self::new(ErrorKind::Unreachable, "cli/unreachable", message) }
    }

    /// A function without a route in a server's HTTP interface.
    pub(super) fn no_route() -> Self {
        let message = "this cannot be done through a server";
        let hint =
            Some("run the command on the server's machine, without --server and BOUGH_SERVER");
        Self { hint, ..Self::new(ErrorKind::Usage, "cli/no_route", message) }
    }

    /// A problem document of a server.
    pub(super) fn of_problem(status: u16, body: &Value) -> Self {
        let text = |field: &str| body.get(field).and_then(Value::as_str).map(str::to_owned);
        let code = text("code").unwrap_or_else(|| format!("http/{status}"));
        let message = text("detail").or_else(|| text("title"));
        let message =
            message.unwrap_or_else(|| format!("the server answered with status {status}"));
        Self::new(kind_of(&code, status), &code, message)
    }

    /// The same as an error of a store; [`store_failed`] restores it.
    pub(super) fn into_store_error(self) -> StoreError {
        StoreError::Io(Arc::new(std::io::Error::other(self)))
    }

    /// Whether nothing of that name is there.
    pub(crate) fn is_not_found(&self) -> bool {
        self.kind == ErrorKind::NotFound
    }
}

/// An error of a store as the service reports it. An error that came through a server is returned as the server
/// reported it.
pub(crate) fn store_failed(error: StoreError) -> CallError {
    let reported = match &error {
        StoreError::Io(error) => {
            error.get_ref().and_then(|inner| inner.downcast_ref::<CallError>())
        }
        _ => None,
    };
    reported.cloned().unwrap_or_else(|| ServiceError::from(error).into())
}

/// An error of the service's own reads of a store, also of one behind a server.
pub(crate) fn service_failed(error: ServiceError) -> CallError {
    match error {
        ServiceError::Storage { source: Some(source), .. } => store_failed(*source),
        other => other.into(),
    }
}

impl From<ServiceError> for CallError {
    fn from(error: ServiceError) -> Self {
        if let ServiceError::Storage { source: Some(source), .. } = &error
            && let StoreError::Corrupt { what, place } = &**source
        {
            return Self::new(ErrorKind::Damaged, error.code(), describe_damage(what, place));
        }
        Self::new(kind_of(error.code(), error.http_status()), error.code(), error.to_string())
    }
}

/// Damage, with its place: whoever runs the command may see the files.
pub(crate) fn describe_damage(what: &str, place: &str) -> String {
    format!("stored data is damaged: {what} ({place})")
}

impl From<CallError> for CommandError {
    fn from(error: CallError) -> Self {
        let hint = own_hint(&error).or(error.hint);
        Self::new(error.kind, error.message).maybe_hint(hint)
    }
}

fn kind_of(code: &str, status: u16) -> ErrorKind {
    match (code, status) {
        ("session/function_not_found", _) => ErrorKind::Failed,
        (_, 404) => ErrorKind::NotFound,
        (_, 409 | 412 | 423) | ("session/busy", _) => ErrorKind::Conflict,
        (_, 401 | 403) => ErrorKind::Forbidden,
        _ => ErrorKind::Failed,
    }
}

/// The next step in the words of the command line. The service's own hints are for callers of its functions, so every code
/// has one here.
fn own_hint(error: &CallError) -> Option<&'static str> {
    let hint = match error.code.as_str() {
        _ if error.kind == ErrorKind::Damaged => {
            "`bough verify` lists the damage, `bough salvage` copies what is whole"
        }
        "session/not_found" => {
            "`bough ls --all` lists the sessions, `bough restore --list` the deleted ones"
        }
        "session/entry_not_found" | "session/parent_not_found" => {
            "`bough tree SESSION --print` shows the entries with their ids"
        }
        "session/leaf_conflict" | "session/other_incarnation" | "session/invalid_cursor" => {
            "the session changed meanwhile; look at it and run the command again"
        }
        "session/not_in_trash" => "`bough restore --list` lists the deleted sessions",
        "session/already_exists" => {
            "`bough rm` the session that has the id now, or `bough fork` it before"
        }
        "session/locked" => "end the program that writes it, or run the command again later",
        "session/busy" => "run the command again",
        "session/forbidden" => "use a token with the right for it: --token, or BOUGH_TOKEN",
        _ if error.kind == ErrorKind::Forbidden => "give a token with --token, or in BOUGH_TOKEN",
        "session/unsupported" => "`bough migrate FILE` brings the file in; sessions can do more",
        "session/context_too_large" => {
            "`--max-tokens` shows the newest part, `bough compact` makes it smaller"
        }
        "session/too_large" => "give less text, or keep it in a file and name the file",
        "session/storage" => {
            "check that the disk has free space and can be written, then run the command again"
        }
        code if code.starts_with("session/") => "`bough help COMMAND` shows what it takes",
        _ => return None,
    };
    Some(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_commands_and_never_functions() {
        let errors = [
            ServiceError::NotFound { session: "s".into() },
            ServiceError::EntryNotFound { session: "s".into(), entry: "e".into() },
            ServiceError::InvalidRequest { reason: "r".into() },
            ServiceError::Unsupported { what: "be renamed" },
            ServiceError::Storage { reason: "r".into(), source: None },
            ServiceError::EmptyBatch,
            ServiceError::ContextTooLarge { limit: 1 },
        ];
        for error in errors {
            let failed = CommandError::from(CallError::from(error));
            assert_eq!(failed.hints.len(), 1, "{failed}");
            assert!(
                !failed.hints[0].contains("::") && !failed.hints[0].contains('_'),
                "{failed:?}"
            );
        }
    }
}
