//! Sessions from the records of their logs.

use bough_session::{EntryBody, FORMAT_PHI, Record};

use super::refs::Library;
use crate::event::AgentEvent;
use crate::fact::Fact;
use crate::message::AgentMessage;
use crate::model::Session;
use crate::recorder::SessionRecorder;

/// A fold over the log of one session: it makes the session that a recorder made of the same events.
#[derive(Debug)]
pub struct RecordFold {
    session_id: String,
    library: Library,
    recorder: SessionRecorder,
}

impl RecordFold {
    /// The fold of an empty log.
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            library: Library::default(),
            recorder: SessionRecorder::of_log(),
        }
    }

    /// Takes in the next record.
    pub fn read(&mut self, record: &Record) {
        if let Some(event) = read(&mut self.library, record) {
            // A log says nothing that its session cannot place; what is left to say was said already.
            drop(self.recorder.on_event(event));
        }
    }

    /// The session as it stands.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        self.recorder.held(&self.session_id)
    }

    pub(super) fn into_recorder(self) -> SessionRecorder {
        self.recorder
    }

    /// The session, if there was one.
    #[must_use]
    pub fn into_session(self) -> Option<Session> {
        self.session().cloned()
    }
}

/// The session that a log makes; `None` if nothing was recorded in it.
#[must_use]
pub fn fold_records<'a>(
    session_id: &str,
    records: impl IntoIterator<Item = &'a Record>,
) -> Option<Session> {
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
                && let Ok(message) = serde_json::from_str::<AgentMessage>(body.json.get())
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
