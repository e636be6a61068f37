use bough_recorder::DurableError;
use bough_search::SearchError;
use bough_service::ServiceError;
use bough_store::StoreError;
use bough_store::shared_state::SharedStateError;

/// Why something did not happen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store cannot be opened or closed. See that the folder exists, may be written, and is not another program's.
    #[error("the store cannot be opened or closed: {0}")]
    Store(#[from] StoreError),
    /// The folder cannot be used.
    #[error("the folder cannot be used: {0}")]
    Folder(#[from] std::io::Error),
    /// The documents that programs on one folder share cannot be read.
    #[error(transparent)]
    Shared(#[from] SharedStateError),
    /// The search index cannot be made.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// Events are not stored. The message says of which session, and why.
    #[error(transparent)]
    Recording(#[from] DurableError<ServiceError>),
    /// A rule refused the call, or the store failed; the code and the hint say what to do.
    #[error("{code}: {0}", code = .0.code())]
    Service(#[from] ServiceError),
}

impl Error {
    /// The stable code of a refused call, such as `session/not_found`.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Service(error) => Some(error.code()),
            Self::Store(_)
            | Self::Folder(_)
            | Self::Shared(_)
            | Self::Search(_)
            | Self::Recording(_) => None,
        }
    }
}
