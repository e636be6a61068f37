//! What a recorder has to say about an event.

use std::fmt;

/// What a recorder has to say about an event; usually nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What was not as expected.
    pub notices: Vec<Notice>,
}

/// Something about an event that was not as expected. Nothing is ever left out without one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The event speaks of a loop that was never heard of. It is not recorded.
    UnknownLoop {
        /// The loop.
        loop_id: String,
        /// The event's type.
        event_type: String,
    },
    /// The event speaks of no loop, and so belongs nowhere. It is not recorded.
    NoLoop {
        /// The event's type.
        event_type: String,
    },
    /// The event speaks of a session that was never heard of. It is not recorded.
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
    /// The very same start was heard again. It is recorded once.
    RepeatedStart {
        /// The loop.
        loop_id: String,
    },
    /// The loop had ended, and is heard again from its very start: this event is among its events, and is
    /// not recorded twice.
    AlreadyRecorded {
        /// The session.
        session_id: String,
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
    /// A session came back that had been drained so long ago that it is no longer at hand. What is
    /// recorded of it from now on holds only its later loops; saving it over the earlier file is
    /// refused.
    SessionForgotten {
        /// The session.
        session_id: String,
    },
    /// The event links its session with another one, and the other's side of the link could not be written. The
    /// event itself is recorded.
    LinkNotStored {
        /// The other session.
        session_id: String,
        /// Why.
        reason: String,
    },
    /// The session could not be stored. Nothing more of it is until it is recorded anew.
    NotStored {
        /// The session.
        session_id: String,
        /// Why.
        reason: String,
    },
}

impl Report {
    /// Whether there is nothing to say.
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
                write!(f, "{event_type} of a session that was never heard of: {session_id:?}")
            }
            Self::RefusedSession { event_type } => {
                write!(f, "{event_type} of a session that was refused")
            }
            Self::RepeatedStart { loop_id } => write!(f, "{loop_id:?} was started twice"),
            Self::AlreadyRecorded { session_id, event_type } => {
                write!(f, "{event_type} is recorded in session {session_id:?} already")
            }
            Self::LateEvent { loop_id, event_type } => {
                write!(f, "{event_type} after the end of its loop {loop_id:?}")
            }
            Self::LoopRenamed { loop_id, recorded_as } => {
                write!(f, "{loop_id:?} was used before; this loop is recorded as {recorded_as:?}")
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
                "session {session_id:?} came back after it was forgotten; only its later loops are recorded"
            ),
            Self::LinkNotStored { session_id, reason } => {
                write!(f, "the link is not written in session {session_id:?}: {reason}")
            }
            Self::NotStored { session_id, reason } => {
                write!(f, "session {session_id:?} is not stored any further: {reason}")
            }
        }
    }
}
