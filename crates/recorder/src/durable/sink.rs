//! The target of a recorder.

use async_trait::async_trait;
use bough_session::{NewRecord, Record};

/// Where a recorder writes the records of sessions: the part of a store that recording needs.
#[async_trait]
pub trait RecordSink: Send + Sync + 'static {
    /// Why a call failed.
    type Error: std::error::Error + Send + Sync + 'static;
    /// A session that one recorder records. While the recorder has it and it is not idle, no other recorder gets a
    /// claim of the same session.
    type Claim: Send + 'static;

    /// All records of a session; none if there is no such session.
    async fn load(&self, session_id: &str) -> Result<Vec<Record>, Self::Error>;

    /// Claims a session and reads it. Fails while another recorder has it.
    async fn claim(&self, session_id: &str) -> Result<(Self::Claim, Vec<Record>), Self::Error>;

    /// Marks the claim as idle, because no loop of the session is open: another recorder may take
    /// it.
    fn rest(&self, _claim: &mut Self::Claim) {}

    /// Continues a session after it was idle. Returns `false` if another recorder wrote into it meanwhile; then the
    /// claim cannot be used any more.
    async fn renew(&self, _claim: &mut Self::Claim) -> Result<bool, Self::Error> {
        Ok(true)
    }

    /// Appends records to a session and creates the session if it is new. All of them are durable when this returns. If
    /// it fails, they may or may not be stored.
    async fn append(
        &self,
        claim: &mut Self::Claim,
        records: Vec<NewRecord>,
    ) -> Result<(), Self::Error>;
}
