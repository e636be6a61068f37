//! Notices about events.

use std::fmt;

/// What a recorder reports about an event; usually nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The notices.
    pub notices: Vec<Notice>,
}

/// Something unexpected about an event. The recorder leaves nothing out without one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The event names an unknown loop. It is not recorded.
    UnknownLoop {
        /// The loop.
        loop_id: String,
        /// The event's type.
        event_type: String,
    },
    /// The event names no loop. It is not recorded.
    NoLoop {
        /// The event's type.
        event_type: String,
    },
    /// The event names an unknown session. It is not recorded.
    UnknownSession {
        /// The session.
        session_id: String,
        /// The event's type.
        event_type: String,
    },
    /// The event belongs to a session that `before_task` refused. It is not recorded.
    RefusedSession {
        /// The event's type.
        event_type: String,
    },
    /// The same start came twice. It is recorded once.
    RepeatedStart {
        /// The loop.
        loop_id: String,
    },
    /// The event is recorded already, because the same stream was recorded before. It is not recorded twice.
    AlreadyRecorded {
        /// The session.
        session_id: String,
        /// The event's type.
        event_type: String,
    },
    /// The loop ended in an earlier recording, and the stream has not repeated its start. The event is left out.
    StartNotHeard {
        /// The loop.
        loop_id: String,
        /// The event's type.
        event_type: String,
    },
    /// The event came after its loop had ended. It is kept among the loop's events.
    LateEvent {
        /// The loop.
        loop_id: String,
        /// The event's type.
        event_type: String,
    },
    /// A loop began under an id that an earlier loop has. It is recorded under another.
    LoopRenamed {
        /// The id that it came with.
        loop_id: String,
        /// The id that it is recorded under.
        recorded_as: String,
    },
    /// A turn began before the one before it had ended. That one is not among the turns; its events are kept.
    TurnUnfinished {
        /// The loop.
        loop_id: String,
        /// The turn that did not end.
        turn_index: u32,
    },
    /// A loop ended in the middle of a turn. The turn is kept and ends with its loop.
    TurnCutShort {
        /// The loop.
        loop_id: String,
        /// The turn.
        turn_index: u32,
    },
    /// A turn ended that had not begun. It is not among the turns; its event is kept.
    TurnNotStarted {
        /// The loop.
        loop_id: String,
    },
    /// A loop was chosen from a group that was never announced. It stands in a group of its own.
    GroupNotAnnounced {
        /// The chosen loop.
        selected_loop_id: String,
    },
    /// A loop was chosen from a group that was decided before. The first choice stands.
    GroupDecided {
        /// The loop that was chosen now.
        selected_loop_id: String,
    },
    /// A session came back that had been drained so long ago that it is no longer in memory. What
    /// is recorded of it from now on holds only its later loops; saving it over the earlier file is
    /// refused.
    SessionForgotten {
        /// The session.
        session_id: String,
    },
    /// The event links two sessions, and the link could not be written in the other one. The event itself is recorded.
    LinkNotStored {
        /// The other session.
        session_id: String,
        /// Why.
        reason: String,
    },
    /// The session could not be stored. The recorder stores nothing more of it.
    NotStored {
        /// The session.
        session_id: String,
        /// Why.
        reason: String,
    },
}

impl Report {
    /// Whether there are no notices.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.notices.is_empty()
    }

    /// Whether the event is not recorded anywhere.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.notices.iter().any(Notice::is_lost)
    }

    pub(super) fn note(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}

impl Notice {
    /// Whether the event is not recorded anywhere.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        matches!(
            self,
            Self::UnknownLoop { .. }
                | Self::NoLoop { .. }
                | Self::UnknownSession { .. }
                | Self::RefusedSession { .. }
                | Self::StartNotHeard { .. }
                | Self::GroupDecided { .. }
                | Self::NotStored { .. }
        )
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLoop { loop_id, event_type } => {
                write!(f, "{event_type} of a loop that never started: {loop_id:?}")
            }
            Self::NoLoop { event_type } => write!(f, "{event_type} names no loop"),
            Self::UnknownSession { session_id, event_type } => {
                write!(f, "{event_type} of an unknown session: {session_id:?}")
            }
            Self::RefusedSession { event_type } => {
                write!(f, "{event_type} of a session that was refused")
            }
            Self::RepeatedStart { loop_id } => write!(f, "{loop_id:?} was started twice"),
            Self::AlreadyRecorded { session_id, event_type } => {
                write!(f, "{event_type} is already recorded in session {session_id:?}")
            }
            Self::StartNotHeard { loop_id, event_type } => {
                write!(
                    f,
                    "{event_type} of loop {loop_id:?}, which ended in an earlier recording and has not started in this one"
                )
            }
            Self::LateEvent { loop_id, event_type } => {
                write!(f, "{event_type} after the end of its loop {loop_id:?}")
            }
            Self::LoopRenamed { loop_id, recorded_as } => {
                write!(
                    f,
                    "another loop has the id {loop_id:?}; this one is recorded as {recorded_as:?}"
                )
            }
            Self::TurnUnfinished { loop_id, turn_index } => {
                write!(f, "turn {turn_index} of {loop_id:?} did not end")
            }
            Self::TurnCutShort { loop_id, turn_index } => {
                write!(f, "{loop_id:?} ended in the middle of turn {turn_index}; the turn is kept")
            }
            Self::TurnNotStarted { loop_id } => {
                write!(f, "a turn of {loop_id:?} ended that had not begun")
            }
            Self::GroupNotAnnounced { selected_loop_id } => {
                write!(f, "{selected_loop_id:?} was chosen from a group that was never announced")
            }
            Self::GroupDecided { selected_loop_id } => {
                write!(f, "{selected_loop_id:?} was chosen from a group that was decided before")
            }
            Self::SessionForgotten { session_id } => write!(
                f,
                "session {session_id:?} came back after the recorder dropped it; only its later loops are recorded"
            ),
            Self::LinkNotStored { session_id, reason } => {
                write!(f, "the link is not written in session {session_id:?}: {reason}")
            }
            Self::NotStored { session_id, reason } => {
                write!(f, "recording of session {session_id:?} stopped: {reason}")
            }
        }
    }
}
