use bough_platform::takes_no_writing;
use thiserror::Error;

/// Why a search or a change of an index did not happen.
#[derive(Debug, Error)]
pub enum SearchError {
    /// Another process changed the index since the batch was made. Read the cursor again.
    #[error("the search index was moved by another process")]
    Conflict,
    /// The index is damaged or of another version; it has to be built again.
    #[error("the search index cannot be read: {reason}; `bough reindex` builds it again")]
    Corrupt {
        /// What is wrong with it.
        reason: String,
    },
    /// The cursor does not come from this index.
    #[error("the cursor is not one of a search; begin again without it")]
    InvalidCursor,
    /// The index cannot be reached now.
    #[error("the search index cannot be used now: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
    /// The disk takes no writing: it is full, or it can only be read.
    #[error("the search index cannot be written: {reason}")]
    Unwritable {
        /// Why.
        reason: String,
    },
}

impl From<std::io::Error> for SearchError {
    fn from(error: std::io::Error) -> Self {
        let reason = error.to_string();
        if takes_no_writing(&error) {
            Self::Unwritable { reason }
        } else {
            Self::Unavailable { reason }
        }
    }
}

impl From<rusqlite::Error> for SearchError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Corrupt { reason: error.to_string() }
            }
            // On a full disk its side files cannot grow, for which SQLite has no code of its own.
            Some(
                ErrorCode::DiskFull
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::SystemIoFailure,
            ) => Self::Unwritable { reason: error.to_string() },
            _ => Self::Unavailable { reason: error.to_string() },
        }
    }
}
