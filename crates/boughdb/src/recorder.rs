use std::sync::Arc;

use bough_recorder::{
    AgentEvent, CompactionBlock, DurableOptions, DurableRecorder, Fact, Recording,
};
use bough_service::{RecordingSink, ServiceError};

use crate::Error;

/// Records the events of any number of agents into a store. Cheap to clone; the recording ends with
/// [`Recorder::finish`], or with the last clone.
///
/// A session belongs to one recorder while a loop of it is open: another recorder, also one of another process, is
/// refused meanwhile. On a store without locks, such as a bridge, a recorder of another process is not refused; the
/// first one fails at its next event.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), boughdb::Error> {
/// use boughdb::recording::{AgentEnd, AgentStart, Timestamp};
/// use boughdb::{Bough, assistant, user};
///
/// let bough = Bough::in_memory()?;
/// let recorder = bough.recorder()?;
/// let now = Timestamp::now();
/// recorder.record(AgentStart::new("agent", "chat-1", "chat-1.main.1", now)).await?;
/// let said = [user("Name a tree."), assistant("local", "small", "Hazel.")];
/// recorder.record(AgentEnd::new("chat-1.main.1", said, now)).await?;
/// recorder.sync().await?;
/// // Everything up to here is durable, and the recording may go on.
/// let recording = recorder.finish().await?;
/// assert_eq!((recording.sessions.len(), recording.events_not_stored), (1, 0));
/// assert_eq!(bough.session("chat-1").messages().await?.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Recorder {
    inner: DurableRecorder<RecordingSink>,
}

impl Recorder {
    pub(crate) fn start(sink: RecordingSink, options: DurableOptions) -> Self {
        Self { inner: DurableRecorder::start(Arc::new(sink), options) }
    }

    /// Takes an event. It is stored soon after; this waits only while too many events are not stored yet.
    pub async fn record(&self, event: impl Into<AgentEvent> + Send) -> Result<(), Error> {
        Ok(self.inner.record(event.into()).await?)
    }

    /// Waits until every event that was taken is durable; an error if one is not.
    pub async fn sync(&self) -> Result<(), Error> {
        Ok(self.inner.sync().await?)
    }

    /// Lays a compaction over a loop, or takes it off. The loop's messages stay as they are; the context loader
    /// ([`recording::build_context_from_session`](crate::recording::build_context_from_session)) reads the block in
    /// their place.
    pub async fn set_compaction_block(
        &self,
        session_id: &str,
        loop_id: &str,
        block: Option<CompactionBlock>,
    ) -> Result<(), Error> {
        let (session_id, loop_id) = (session_id.to_owned(), loop_id.to_owned());
        self.record(Fact::Compaction { session_id, loop_id, block }).await
    }

    /// Aborts the loops that are still open, stores everything, and returns the sessions.
    pub async fn finish(self) -> Result<Recording<ServiceError>, Error> {
        Ok(self.inner.finish().await?)
    }
}
