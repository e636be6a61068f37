//! Cursors of pages: opaque to callers, the same text as the original's.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bough_session::EntryId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::ServiceError;

/// The entry at which a page of messages ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EntryCursor {
    pub(crate) id: String,
}

impl EntryCursor {
    /// The entry that a caller's cursor names.
    pub(crate) fn read(text: Option<&str>) -> Result<Option<EntryId>, ServiceError> {
        let cursor = text.map(decode::<Self>).transpose()?;
        Ok(cursor.map(|cursor| EntryId::from_stored(cursor.id)))
    }

    /// The cursor for what comes after a page; none when nothing does.
    pub(crate) fn after(last: Option<&EntryId>) -> Result<Option<String>, ServiceError> {
        last.map(|last| encode(&Self { id: last.to_string() })).transpose()
    }
}

/// The deleted session at which a page of the trash ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct TrashCursor {
    pub(crate) deleted_at: i64,
    pub(crate) incarnation: String,
}

pub(crate) fn encode<T: Serialize>(cursor: &T) -> Result<String, ServiceError> {
    let text = serde_json::to_string(cursor)
        .map_err(|error| ServiceError::storage(format!("a cursor cannot be written: {error}")))?;
    Ok(STANDARD.encode(text))
}

pub(crate) fn decode<T: DeserializeOwned>(text: &str) -> Result<T, ServiceError> {
    let refuse = || ServiceError::InvalidCursor {
        reason: "the cursor is not one that a page of this list ended with".to_owned(),
    };
    let bytes = STANDARD.decode(text).map_err(|_| refuse())?;
    serde_json::from_slice(&bytes).map_err(|_| refuse())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_and_anything_else_is_refused() {
        let cursor = EntryCursor { id: "e_1".into() };
        let text = encode(&cursor).unwrap();
        assert_eq!(text, STANDARD.encode(r#"{"id":"e_1"}"#));
        assert_eq!(decode::<EntryCursor>(&text).unwrap(), cursor);
        for bad in ["", "%", "e30=", "bnVsbA==", "eyJpZCI6MX0="] {
            let refused = decode::<EntryCursor>(bad).unwrap_err();
            assert_eq!(refused.code(), "session/invalid_cursor", "{bad}");
        }
    }
}
