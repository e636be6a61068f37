use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use bough_session::Incarnation;
use bough_store::{ChangeCursor, Position, SEAL_CHARS, Sealed, Steps, seal, unseal};

use super::event::FeedEvent;
use super::reader::ReadItem;
use crate::error::ServiceError;

/// Where a subscriber is in a feed. As text it is short, plain and fit for a `Last-Event-ID`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedCursor {
    /// In the feed of one session.
    Session(SessionCursor),
    /// In the feed of all sessions.
    All(GlobalCursor),
}

/// A position in the feed of one session: `<incarnation>.<seq>.<step>`, or `<incarnation>.<seq>.<step>.<part>` between two events of one
/// record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionCursor {
    /// The incarnation of the session. The cursor is valid only in it.
    pub incarnation: Incarnation,
    /// The last record that was read.
    pub position: Position,
    /// How many events of that record were read; `None` is all of them.
    pub part: Option<u32>,
}

/// A position in the feed of all sessions: `all.` and sealed text. The feed counts the changes of all callers, so a caller who sees
/// only some sessions must not be able to read the position; and the text of one position is different each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalCursor(Held);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    Position(GlobalPosition),
    Seal(String),
}

/// A position in the feed of all sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GlobalPosition {
    /// The last change that was read whole.
    pub(super) change: ChangeCursor,
    /// How far the next change was read.
    pub(super) inside: Option<Inside>,
}

/// A position inside a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inside {
    /// The last record that was read.
    pub(super) position: Position,
    /// How many events of that record were read; `None` is all of them.
    pub(super) part: Option<u32>,
}

/// A position in a feed, for comparisons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FeedPosition {
    /// In the feed of one session.
    Session(SessionCursor),
    /// In the feed of all sessions.
    All(GlobalPosition),
}

impl FeedPosition {
    /// The beginning of the same incarnation, or of the same count of changes.
    pub(super) const fn start_of(&self) -> Self {
        match self {
            Self::Session(cursor) => Self::Session(SessionCursor::start(cursor.incarnation)),
            Self::All(position) => {
                let epoch = position.change.epoch;
                Self::All(GlobalPosition::after(ChangeCursor { epoch, number: 0 }))
            }
        }
    }

    /// Whether a subscriber that is here knows everything up to another position; `None` where the two cannot be compared,
    /// because they are of different incarnations or counts.
    pub(super) fn covers(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Self::Session(at), Self::Session(other)) if at.incarnation == other.incarnation => {
                Some(at.read_after().covers(other.position))
            }
            (Self::All(at), Self::All(other)) if at.change.epoch == other.change.epoch => {
                Some(at.change.number >= other.change.number)
            }
            _ => None,
        }
    }

    /// Whether a subscriber that is here knows an item.
    pub(super) fn knows(&self, item: &ReadItem) -> bool {
        match (self, &item.position, &item.event) {
            (Self::Session(at), _, Ok(event)) => {
                at.incarnation == event.incarnation && !at.is_before(event)
            }
            (Self::All(at), Self::All(after), Ok(event)) => {
                let change = &after.change;
                at.change.epoch == change.epoch && !at.is_before(change.number, event)
            }
            _ => self.covers(&item.position) == Some(true),
        }
    }

    /// Whether it is among the events of a change. Two readers may count the changes before that one differently, so only one
    /// that has read it to its end can be compared with others.
    pub(super) const fn is_inside_change(&self) -> bool {
        matches!(self, Self::All(GlobalPosition { inside: Some(_), .. }))
    }
}

impl From<FeedPosition> for FeedCursor {
    fn from(position: FeedPosition) -> Self {
        match position {
            FeedPosition::Session(cursor) => Self::Session(cursor),
            FeedPosition::All(position) => Self::All(GlobalCursor::at(position)),
        }
    }
}

impl FeedCursor {
    /// Whether a subscriber that is here knows everything up to another cursor; `false` also if the two cannot be
    /// compared.
    pub(crate) fn is_at_or_after(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Session(at), Self::Session(other)) => {
                at.incarnation == other.incarnation && at.read_after().covers(other.position)
            }
            (Self::All(GlobalCursor(Held::Position(at))), Self::All(GlobalCursor(held))) => {
                let Held::Position(other) = held else { return false };
                let is_whole = other.inside.is_none();
                at.change.epoch == other.change.epoch
                    && (at.change.number > other.change.number
                        || (at.change.number == other.change.number && is_whole))
            }
            _ => false,
        }
    }
}

impl GlobalCursor {
    pub(super) const fn at(position: GlobalPosition) -> Self {
        Self(Held::Position(position))
    }

    /// The position, if it is of this epoch.
    pub(super) fn position(&self, epoch: Incarnation) -> Option<GlobalPosition> {
        match &self.0 {
            Held::Position(position) => {
                Some(position.clone()).filter(|position| position.change.epoch == epoch)
            }
            Held::Seal(text) => GlobalPosition::read(epoch, &unseal(epoch, text)?),
        }
    }
}

/// Stands for "none" in a sealed position.
const NONE: u32 = u32::MAX;

impl GlobalPosition {
    /// After all changes up to one.
    pub(super) const fn after(change: ChangeCursor) -> Self {
        Self { change, inside: None }
    }

    /// After an event of the next change.
    pub(super) fn after_event(change: ChangeCursor, at: &SessionCursor) -> Self {
        let SessionCursor { position, part, .. } = *at;
        Self { change, inside: Some(Inside { position, part }) }
    }

    /// Whether an event comes after this position; `change` is the number of the change before that of the event.
    pub(super) fn is_before(&self, change: u64, event: &FeedEvent) -> bool {
        let inside = self.inside.filter(|_| self.change.number == change);
        match inside {
            Some(inside) => inside.as_cursor(event.incarnation).is_before(event),
            None => self.change.number <= change,
        }
    }

    fn write(&self) -> Sealed {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // A position inside a change has a record before it, so the first position is free to mean "none".
        let Inside { position, part } =
            self.inside.unwrap_or(Inside { position: Position::default(), part: None });
        let numbers = [self.change.number, position.seq, position.step].map(u64::to_be_bytes);
        let last = [part.unwrap_or(NONE), COUNT.fetch_add(1, Ordering::Relaxed)];
        let last = last.map(u32::to_be_bytes);
        let bytes = numbers.as_flattened().iter().chain(last.as_flattened());
        let mut text = Sealed::default();
        for (byte, written) in text.iter_mut().zip(bytes) {
            *byte = *written;
        }
        text
    }

    fn read(epoch: Incarnation, text: &Sealed) -> Option<Self> {
        let (numbers, last) = text.split_at(24);
        let mut numbers = numbers.as_chunks().0.iter().copied().map(u64::from_be_bytes);
        let change = ChangeCursor { epoch, number: numbers.next()? };
        let position = Position { seq: numbers.next()?, step: numbers.next()? };
        let part = u32::from_be_bytes(*last.first_chunk()?);
        let inside = Inside { position, part: Some(part).filter(|part| *part != NONE) };
        let is_inside = position != Position::default();
        Some(Self { change, inside: is_inside.then_some(inside) })
    }
}

impl Inside {
    /// The same position in the feed of its session.
    pub(super) const fn as_cursor(&self, incarnation: Incarnation) -> SessionCursor {
        SessionCursor { incarnation, position: self.position, part: self.part }
    }
}

impl SessionCursor {
    /// After all events up to a position.
    #[must_use]
    pub const fn at(incarnation: Incarnation, position: Position) -> Self {
        Self { incarnation, position, part: None }
    }

    /// Before the first record.
    #[must_use]
    pub const fn start(incarnation: Incarnation) -> Self {
        Self::at(incarnation, Position::at(0))
    }

    /// After one more event of the same incarnation.
    #[must_use]
    pub fn after(&self, event: &FeedEvent) -> Self {
        Self {
            incarnation: event.incarnation,
            position: self.position.join(event.position()),
            part: (!event.is_last_part).then(|| event.part.saturating_add(1)),
        }
    }

    /// Where to read records from: before the record that was only read in part.
    pub(super) fn read_after(&self) -> Position {
        match self.part {
            None => self.position,
            Some(_) => Position { seq: self.position.seq.saturating_sub(1), ..self.position },
        }
    }

    /// Whether an event of the same incarnation is yet to be delivered to a subscriber that is here.
    pub(super) fn is_before(&self, event: &FeedEvent) -> bool {
        match self.part {
            Some(part) if event.seq == self.position.seq && event.steps == Steps::None => {
                event.part >= part
            }
            _ => !event.steps.is_known_at(event.seq, self.position),
        }
    }
}

impl fmt::Display for SessionCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { seq, step } = self.position;
        write!(f, "{}.{seq}.{step}", self.incarnation)?;
        match self.part {
            Some(part) => write!(f, ".{part}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for GlobalCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Held::Position(position) => {
                write!(f, "all.{}", seal(position.change.epoch, &position.write()))
            }
            Held::Seal(text) => write!(f, "all.{text}"),
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
            Some(seal) => parse_seal(seal).map(Self::All),
            None => parse_session(text).map(Self::Session),
        };
        parsed.ok_or_else(|| ServiceError::InvalidCursor {
            reason: "this is not a cursor of this feed; start again without one".to_owned(),
        })
    }
}

fn parse_session(text: &str) -> Option<SessionCursor> {
    let mut parts = text.split('.');
    let incarnation = parts.next()?.parse().ok()?;
    let position = Position { seq: parts.next()?.parse().ok()?, step: parts.next()?.parse().ok()? };
    let part = match parts.next() {
        Some(part) => Some(part.parse().ok()?),
        None => None,
    };
    parts.next().is_none().then_some(SessionCursor { incarnation, position, part })
}

fn parse_seal(text: &str) -> Option<GlobalCursor> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_seal = text.len() == SEAL_CHARS && text.bytes().all(is_letter);
    is_seal.then(|| GlobalCursor(Held::Seal(text.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INCARNATION: Incarnation = Incarnation::new([7; 16]);

    #[test]
    fn cursors_survive_their_text_and_anything_else_is_refused() {
        let position = Position { seq: 12, step: 3 };
        let session = SessionCursor::at(INCARNATION, position);
        for cursor in [session, SessionCursor { part: Some(1), ..session }] {
            let text = cursor.to_string();
            assert_eq!(text.parse::<FeedCursor>().unwrap(), FeedCursor::Session(cursor), "{text}");
        }
        for bad in [
            "",
            "all.",
            "1.2.3",
            "all.x.1",
            &format!("{INCARNATION}.1"),
            &format!("{INCARNATION}.1.2.3.4"),
            &format!("all.{}", "A".repeat(63)),
            &format!("all.{}", "A".repeat(65)),
            &format!("all.{}+", "A".repeat(63)),
        ] {
            let refused = bad.parse::<FeedCursor>().unwrap_err();
            assert_eq!(refused.code(), "session/invalid_cursor", "{bad}");
        }
    }

    fn sealed(position: &GlobalPosition) -> GlobalCursor {
        let text = FeedCursor::All(GlobalCursor::at(position.clone())).to_string();
        match text.parse().unwrap() {
            FeedCursor::All(cursor) => cursor,
            FeedCursor::Session(cursor) => panic!("{cursor:?}"),
        }
    }

    #[test]
    fn a_position_survives_its_seal() {
        let change = ChangeCursor { epoch: INCARNATION, number: u64::MAX };
        let position = Position { seq: 12, step: 3 };
        for inside in [
            None,
            Some(Inside { position, part: None }),
            Some(Inside { position, part: Some(0) }),
            Some(Inside { position: Position::at(1), part: Some(7) }),
        ] {
            let position = GlobalPosition { change: change.clone(), inside };
            assert_eq!(sealed(&position).position(INCARNATION), Some(position.clone()));
            assert_eq!(sealed(&position).position(Incarnation::new([8; 16])), None);
        }
    }

    /// A caller who sees a few sessions among many could otherwise count the changes of the others.
    #[test]
    fn the_text_of_a_cursor_reveals_nothing() {
        let position = GlobalPosition::after(ChangeCursor { epoch: INCARNATION, number: 41 });
        let once = GlobalCursor::at(position.clone()).to_string();
        let twice = GlobalCursor::at(position).to_string();
        assert_ne!(once, twice, "or a caller could find out whether anything happened");
        assert!(!once.contains("41") || !twice.contains("41"));
        assert!(!once.contains(&INCARNATION.to_string()), "the epoch is the key");
    }
}
