//! Sessions from the records of their logs.

use bough_session::{EntryBody, FORMAT_PHI, Record};

use super::refs::Library;
use crate::event::AgentEvent;
use crate::fact::Fact;
use crate::message::RecordedMessage;
use crate::model::RecordedSession;
use crate::recorder::SessionRecorder;
use crate::replay::{EventLog, Replay};

/// A fold over the log of one session: it makes the session that a recorder made of the same events.
#[derive(Debug)]
pub struct RecordFold {
    session_id: String,
    library: Library,
    recorder: SessionRecorder,
    /// The events in their original order, if they are to be replayed.
    event_log: Option<EventLog>,
}

impl RecordFold {
    /// The fold of an empty log.
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            library: Library::default(),
            recorder: SessionRecorder::of_log(),
            event_log: None,
        }
    }

    /// The fold of an empty log, which can play it back: see [`Self::replay`].
    #[must_use]
    pub fn to_replay(session_id: impl Into<String>) -> Self {
        Self { event_log: Some(EventLog::default()), ..Self::new(session_id) }
    }

    /// Takes in the next record.
    pub fn read(&mut self, record: &Record) {
        if let Some(event) = read(&mut self.library, record) {
            if let (Some(event_log), Record::Loop(recorded)) = (&mut self.event_log, record.known())
            {
                let before = self.recorder.held(&self.session_id);
                event_log.push(recorded.loop_id.as_str(), &event, before);
            }
            // A log has no event that its session cannot place, and its notices were reported already.
            drop(self.recorder.on_event(event));
        }
    }

    /// The session as it stands.
    #[must_use]
    pub fn session(&self) -> Option<&RecordedSession> {
        self.recorder.held(&self.session_id)
    }

    /// The events of the log, in the order in which they arrived; `None` if nothing was recorded in it. A fold that
    /// keeps no order returns events that make an equal session.
    #[must_use]
    pub fn replay(&self) -> Option<Replay> {
        let session = self.session()?;
        Some(
            self.event_log
                .as_ref()
                .map_or_else(|| Replay::of(session), |event_log| event_log.play(session)),
        )
    }

    /// The session, if there was one.
    #[must_use]
    pub fn into_session(self) -> Option<RecordedSession> {
        self.session().cloned()
    }
}

/// The session that a log makes; `None` if nothing was recorded in it.
#[must_use]
pub fn fold_records<'a>(
    session_id: &str,
    records: impl IntoIterator<Item = &'a Record>,
) -> Option<RecordedSession> {
    let mut fold = RecordFold::new(session_id);
    for record in records {
        fold.read(record);
    }
    fold.into_session()
}

/// The events of a log, in the order in which they were recorded, without the facts between them.
pub fn events_of_records<'a>(
    records: impl IntoIterator<Item = &'a Record>,
) -> impl Iterator<Item = AgentEvent> {
    let mut library = Library::default();
    records
        .into_iter()
        .filter_map(move |record| read(&mut library, record))
        .filter(|event| Fact::from_event(event).is_none())
}

/// The event of a record, if it is one.
fn read(library: &mut Library, record: &Record) -> Option<AgentEvent> {
    match record.known() {
        Record::Entry(entry) => {
            if let EntryBody::Foreign(body) = &entry.body
                && body.format == FORMAT_PHI
                && let Ok(message) = serde_json::from_str::<RecordedMessage>(body.json.get())
            {
                library.add(&entry.id, message);
            }
            None
        }
        Record::Loop(event) => {
            let event = library.event(event.loop_id.as_str(), &event.event)?;
            (event.type_name() != "bough:announced").then_some(event)
        }
        _ => None,
    }
}
