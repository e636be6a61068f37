//! Documents by key, in scopes: a session of kind `kv` whose log holds one record for each put.
//!
//! While a scope is in use, an index in memory has the newest record of each key ([`DocumentIndex`]); it is folded from
//! the log once and then updated. So reading a key is one look-up, however often it was overwritten. When more bytes of
//! the log are overwritten than live, it is replaced by one with only the live records ([`compact`]).

mod compact;
mod index;
mod read;
mod write;

pub(crate) use index::{DocumentFact, DocumentIndex, KeptRecord};
pub(crate) use read::{get, list};
pub(crate) use write::{delete, put, write};

use bough_session::limits::{DOCUMENT_SCOPE_BYTES_MAX, LimitError, check_at_most};
use bough_session::{KIND_DOCUMENTS, SessionId, SessionState};

use crate::error::ServiceError;
use crate::scope::Scope;

/// The session that holds the documents of a scope.
fn session_of(scope: &str) -> Result<SessionId, ServiceError> {
    if scope.is_empty() {
        return Err(LimitError::Empty { what: "scope" }.into());
    }
    check_at_most("scope", "bytes", scope.len(), DOCUMENT_SCOPE_BYTES_MAX)?;
    Ok(SessionId::of_documents(scope))
}

/// Whether the documents of a session exist for a caller.
fn are_visible(caller: &Scope, state: &SessionState) -> bool {
    state.kind.as_deref() == Some(KIND_DOCUMENTS)
        && !state.deleted
        && caller.sees(state.meta.metadata.as_ref())
}
