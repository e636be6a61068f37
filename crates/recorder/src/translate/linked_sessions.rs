//! Sessions that are in memory only so that links with them can be written.

use bough_session::Record;

use super::{Translator, read_log};

impl Translator {
    /// Loads a session from its log while links with it are written, and returns whether it exists. Open loops stay
    /// open: another recorder may be recording them.
    ///
    /// [`Self::drop_linked`] is called before the next event of the session itself.
    pub(crate) fn load_linked(&mut self, session_id: &str, records: &[Record]) -> bool {
        if self.holds(session_id) {
            return false;
        }
        let (fold, tree) = read_log(session_id, records);
        let Some(session) = fold.into_session() else {
            return false;
        };
        self.trees.insert(session_id.to_owned(), tree);
        self.recorder.hold_linked(session);
        true
    }

    /// Drops a session that [`Self::load_linked`] took in.
    pub(crate) fn drop_linked(&mut self, session_id: &str) {
        if self.recorder.is_linked(session_id) {
            self.recorder.drop_linked(session_id);
            self.trees.remove(session_id);
        }
    }
}
