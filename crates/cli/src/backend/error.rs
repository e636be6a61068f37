use std::sync::Arc;

use bough_service::ServiceError;
use bough_store::StoreError;
use serde_json::Value;

use crate::command_error::{CommandError, ErrorKind};

/// Why a call was not answered, from either side of the seam.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CallError {
    /// The stable code, such as `session/not_found`.
    pub(crate) code: String,
    /// What happened.
    pub(crate) message: String,
    /// The next step in the service's words, where there is none in ours.
    hint: String,
    kind: ErrorKind,
}

impl CallError {
    /// An answer that is not what the table says. A server of another version may do that.
    pub(crate) fn shape(error: &serde_json::Error) -> Self {
        Self {
            code: "cli/unexpected_answer".to_owned(),
            message: format!("the answer has an unexpected form ({error})"),
            hint: "Use the same version of bough on both sides.".to_owned(),
            kind: ErrorKind::Failed,
        }
    }

    /// The server did not answer.
    pub(super) fn unreachable(server: &str, reason: &str) -> Self {
        Self {
            code: "cli/unreachable".to_owned(),
            message: format!("no answer from {server}: {reason}"),
            hint:
                "See that the server runs there, or leave --server out to use the data directory."
                    .to_owned(),
            kind: ErrorKind::Unreachable,
        }
    }

    /// A function that has no place in a server's HTTP interface.
    pub(super) fn no_route(function: &str) -> Self {
        Self {
            code: "cli/no_route".to_owned(),
            message: format!("{function} cannot be called through a server"),
            hint: "Use the data directory of the server's machine.".to_owned(),
            kind: ErrorKind::Usage,
        }
    }

    /// A problem document of a server.
    pub(super) fn of_problem(status: u16, body: &Value) -> Self {
        let text = |field: &str| body.get(field).and_then(Value::as_str).map(str::to_owned);
        let code = text("code").unwrap_or_else(|| format!("http/{status}"));
        let kind = kind_of(&code, status);
        let message = text("detail").or_else(|| text("title"));
        Self {
            message: message.unwrap_or_else(|| format!("the server answered with status {status}")),
            hint: text("hint").unwrap_or_default(),
            code,
            kind,
        }
    }

    /// The same as a failure of a store, from which [`store_failed`] gets it back whole.
    pub(super) fn into_store_error(self) -> StoreError {
        StoreError::Io(Arc::new(std::io::Error::other(self)))
    }

    /// Whether nothing of that name is there.
    pub(crate) fn is_not_found(&self) -> bool {
        self.kind == ErrorKind::NotFound
    }
}

/// A failure of a store, as the service would tell it; or as the server told it that the store is behind.
pub(crate) fn store_failed(error: StoreError) -> CallError {
    let told = match &error {
        StoreError::Io(error) => {
            error.get_ref().and_then(|inner| inner.downcast_ref::<CallError>())
        }
        _ => None,
    };
    told.cloned().unwrap_or_else(|| ServiceError::from(error).into())
}

impl From<ServiceError> for CallError {
    fn from(error: ServiceError) -> Self {
        let damaged = matches!(
            &error,
            ServiceError::Storage { source: Some(source), .. }
                if matches!(**source, StoreError::Corrupt { .. })
        );
        let kind =
            if damaged { ErrorKind::Damaged } else { kind_of(error.code(), error.http_status()) };
        Self {
            code: error.code().to_owned(),
            message: error.to_string(),
            hint: error.hint().to_owned(),
            kind,
        }
    }
}

impl From<CallError> for CommandError {
    fn from(error: CallError) -> Self {
        let hint = own_hint(&error).map_or_else(|| error.hint.clone(), str::to_owned);
        let kind = error.kind;
        let failed = Self::new(kind, error.message);
        if hint.is_empty() { failed } else { failed.hint(hint) }
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

/// The next step in the words of the command line; the service's own hints name its functions.
fn own_hint(error: &CallError) -> Option<&'static str> {
    if error.kind == ErrorKind::Damaged {
        return Some("`bough verify` lists the damage, `bough salvage` copies what is whole");
    }
    Some(match error.code.as_str() {
        "session/not_found" => {
            "`bough ls --all` lists the sessions, `bough restore --list` the deleted ones"
        }
        "session/entry_not_found" => "`bough tree SESSION` shows the entries with their ids",
        "session/leaf_conflict" => "somebody appended meanwhile; look again and repeat the command",
        "session/not_in_trash" => "`bough restore --list` shows what can be brought back",
        "session/already_exists" => "delete or rename the session that has the id now",
        "session/locked" => {
            "close the program that writes it, or run the command again when it ends"
        }
        "session/busy" => "run the command again",
        "session/forbidden" => "use a token whose rights allow it: --token, or BOUGH_TOKEN",
        _ if error.kind == ErrorKind::Forbidden => "give a token with --token, or in BOUGH_TOKEN",
        _ => return None,
    })
}
