//! What the log makes of a session: its [`SessionState`].

use std::any::Any;

use bough_log as log;
use bough_session::{SessionId, SessionState};

use super::convert;

#[derive(Clone, Debug)]
pub(super) struct SessionFold {
    state: SessionState,
}

impl log::Fold for SessionFold {
    fn apply(&mut self, record: &log::RecordView<'_>) {
        self.state.apply(&convert::record_for_fold(record), record.seq, record.at_ms);
    }

    fn snapshot(&self) -> String {
        // A state is plain data; it has no key that is not a string and no number that JSON lacks.
        serde_json::to_string(&self.state).unwrap_or_else(|_| "null".to_owned())
    }

    fn boxed(&self) -> Box<dyn log::Fold> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SessionFoldMaker;

impl log::FoldMaker for SessionFoldMaker {
    fn start(&self, id: &str) -> Box<dyn log::Fold> {
        Box::new(SessionFold { state: SessionState::new(SessionId::from_stored(id)) })
    }

    fn restore(&self, snapshot: &str) -> Option<Box<dyn log::Fold>> {
        let state: SessionState = serde_json::from_str(snapshot).ok()?;
        state.is_complete().then(|| Box::new(SessionFold { state }) as Box<dyn log::Fold>)
    }
}

/// The state inside a fold of ours.
pub(super) fn state_of(fold: &dyn log::Fold) -> Option<&SessionState> {
    fold.as_any().downcast_ref::<SessionFold>().map(|fold| &fold.state)
}
