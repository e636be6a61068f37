use thiserror::Error;

/// Why a search or a change of an index did not happen.
#[derive(Debug, Error)]
pub enum SearchError {
    /// Another process moved the index since the batch was made; read its place again.
    #[error("the search index was moved by another process")]
    Conflict,
    /// The index is damaged or of another version; it has to be built again.
    #[error("the search index cannot be read: {reason}; `bough reindex` builds it again")]
    Corrupt {
        /// What is wrong with it.
        reason: String,
    },
    /// The cursor is not one that this index gave.
    #[error("the cursor is not one of a search; begin again without it")]
    InvalidCursor,
    /// The index cannot be reached now.
    #[error("the search index cannot be used now: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
}

impl From<std::io::Error> for SearchError {
    fn from(error: std::io::Error) -> Self {
        Self::Unavailable { reason: error.to_string() }
    }
}

impl From<rusqlite::Error> for SearchError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Corrupt { reason: error.to_string() }
            }
            _ => Self::Unavailable { reason: error.to_string() },
        }
    }
}
