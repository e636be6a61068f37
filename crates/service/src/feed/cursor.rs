use std::fmt;
use std::str::FromStr;

use bough_session::Incarnation;
use bough_store::{ChangeCursor, Position};

use super::event::FeedEvent;
use crate::error::ServiceError;

/// Where a subscriber is in a feed. As text it is short, plain and fit for a `Last-Event-ID`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedCursor {
    /// In the feed of one session.
    Session(SessionCursor),
    /// In the feed of all sessions.
    All(AllCursor),
}

/// A place in the feed of one session: `<life>.<seq>.<revision>`, or `<life>.<seq>.<revision>.<part>` between two events of one
/// record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionCursor {
    /// The life of the session; no other life has this place.
    pub incarnation: Incarnation,
    /// The last record that was read.
    pub position: Position,
    /// How many events of that record were read; `None` is all of them.
    pub part: Option<u32>,
}

/// A place in the feed of all sessions: `all.<epoch>.<number>`, or `all.<epoch>.<number>.<part>` between two events of one
/// change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllCursor {
    /// The last change that was read whole.
    pub change: ChangeCursor,
    /// How many events of the next change were read.
    pub part: u32,
}

impl SessionCursor {
    /// After all events up to a position.
    #[must_use]
    pub const fn at(incarnation: Incarnation, position: Position) -> Self {
        Self { incarnation, position, part: None }
    }

    /// After an event.
    #[must_use]
    pub fn after(event: &FeedEvent) -> Self {
        Self {
            incarnation: event.incarnation,
            position: event.position,
            part: (!event.is_last_part).then(|| event.part.saturating_add(1)),
        }
    }

    /// Where to read records from: before the record that was only read in part.
    pub(super) fn read_after(&self) -> Position {
        match self.part {
            None => self.position,
            Some(_) => Position { seq: self.position.seq.saturating_sub(1), revision: u64::MAX },
        }
    }

    /// Whether an event of the same life comes after this place.
    pub(super) fn is_before(&self, event: &FeedEvent) -> bool {
        let place = (event.position, event.part);
        match self.part {
            None => event.position > self.position,
            Some(part) => place >= (self.position, part),
        }
    }
}

impl fmt::Display for SessionCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { seq, revision } = self.position;
        write!(f, "{}.{seq}.{revision}", self.incarnation)?;
        match self.part {
            Some(part) => write!(f, ".{part}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for AllCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "all.{}", self.change)?;
        match self.part {
            0 => Ok(()),
            part => write!(f, ".{part}"),
        }
    }
}

impl fmt::Display for FeedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(cursor) => cursor.fmt(f),
            Self::All(cursor) => cursor.fmt(f),
        }
    }
}

impl FromStr for FeedCursor {
    type Err = ServiceError;

    fn from_str(text: &str) -> Result<Self, ServiceError> {
        let parsed = match text.strip_prefix("all.") {
            Some(rest) => parse_all(rest).map(Self::All),
            None => parse_session(text).map(Self::Session),
        };
        parsed.ok_or_else(|| ServiceError::InvalidCursor {
            reason: "the cursor is not one of this feed; start again without one".to_owned(),
        })
    }
}

fn parse_session(text: &str) -> Option<SessionCursor> {
    let mut parts = text.split('.');
    let incarnation = parts.next()?.parse().ok()?;
    let position =
        Position { seq: parts.next()?.parse().ok()?, revision: parts.next()?.parse().ok()? };
    let part = match parts.next() {
        Some(part) => Some(part.parse().ok()?),
        None => None,
    };
    parts.next().is_none().then_some(SessionCursor { incarnation, position, part })
}

fn parse_all(text: &str) -> Option<AllCursor> {
    let mut parts = text.split('.');
    let epoch = parts.next()?.parse().ok()?;
    let number = parts.next()?.parse().ok()?;
    let part = match parts.next() {
        Some(part) => part.parse().ok()?,
        None => 0,
    };
    parts.next().is_none().then_some(AllCursor { change: ChangeCursor { epoch, number }, part })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_survive_their_text_and_anything_else_is_refused() {
        let life = Incarnation::new([7; 16]);
        let position = Position { seq: 12, revision: 3 };
        let session = SessionCursor::at(life, position);
        let all = AllCursor { change: ChangeCursor { epoch: life, number: 9 }, part: 0 };
        for cursor in [
            FeedCursor::Session(session),
            FeedCursor::Session(SessionCursor { part: Some(1), ..session }),
            FeedCursor::All(all.clone()),
            FeedCursor::All(AllCursor { part: 2, ..all }),
        ] {
            let text = cursor.to_string();
            assert_eq!(text.parse::<FeedCursor>().unwrap(), cursor, "{text}");
        }
        for bad in
            ["", "all.", "1.2.3", "all.x.1", &format!("{life}.1"), &format!("{life}.1.2.3.4")]
        {
            let refused = bad.parse::<FeedCursor>().unwrap_err();
            assert_eq!(refused.code(), "session/invalid_cursor", "{bad}");
        }
    }
}
