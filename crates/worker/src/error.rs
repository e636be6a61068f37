use iii_sdk::Error;

/// Why the engine did not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// It does not answer. Try again when it does.
    #[error("the engine does not answer ({reason})")]
    Unreachable {
        /// What happened.
        reason: String,
    },
    /// It refused.
    #[error("the engine refused: {reason}")]
    Refused {
        /// Why.
        reason: String,
    },
}

impl From<Error> for WorkerError {
    fn from(error: Error) -> Self {
        let reason = error.to_string();
        match error {
            Error::NotConnected | Error::Timeout | Error::WebSocket(_) => {
                Self::Unreachable { reason }
            }
            _ => Self::Refused { reason },
        }
    }
}
