//! The oracle: the requests, their answers, and therefore what a store may and must hold.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bough_log::{Envelope, Incarnation, NewDelta};

use super::judge::Kept;

/// Records that were appended together.
pub(crate) type Batch = Arc<[Envelope<'static>]>;

/// One incarnation of one session, by the order of creation.
pub(crate) type LifeId = usize;

/// Where a session can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Nowhere,
    Live,
    Trash,
}

/// Something that was asked or answered.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    CreateBegun {
        id: String,
    },
    CreateDone {
        life: LifeId,
        incarnation: Incarnation,
    },
    /// The id was taken: nothing was created.
    CreateRefused {
        life: LifeId,
    },
    AppendBegun {
        life: LifeId,
        batch: Batch,
    },
    /// The oldest unanswered batch is durable.
    AppendDone {
        life: LifeId,
    },
    /// The oldest batch without an answer was answered, in the weaker durability: it survives the end of the process,
    /// but not yet a power cut.
    AppendWritten {
        life: LifeId,
    },
    /// The newest unanswered batch was refused before anything was written.
    AppendRefused {
        life: LifeId,
    },
    DeltaBegun {
        life: LifeId,
        delta: NewDelta,
    },
    DeltaDone {
        life: LifeId,
    },
    /// As [`Event::AppendWritten`], for the oldest delta.
    DeltaWritten {
        life: LifeId,
    },
    DeltaRefused {
        life: LifeId,
    },
    /// Everything that was answered is durable.
    Synced {
        life: LifeId,
    },
    /// What was answered without a sync may be lost.
    PowerCut {
        life: LifeId,
    },
    /// A reopened store showed this many of the unanswered batches and deltas; the rest will never
    /// appear.
    Reopened {
        life: LifeId,
        batches: usize,
        deltas: usize,
    },
    /// Exactly these of the unanswered batches, by their place, took effect.
    Kept {
        life: LifeId,
        which: Vec<usize>,
    },
    MoveBegun {
        life: LifeId,
        to: Place,
    },
    /// The move that was begun is durable.
    MoveDone {
        life: LifeId,
    },
    /// A reopened store showed where the session is.
    Found {
        life: LifeId,
        at: Place,
    },
}

/// The requests and answers, each with the number of disk operations done by then.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// What was expected before the first event.
    start: Expectation,
    events: Vec<(usize, Event)>,
    now: Expectation,
}

impl History {
    pub(crate) fn push(&mut self, operations: usize, event: Event) {
        self.now.apply(&event);
        self.events.push((operations, event));
    }

    /// Goes back to the time of an operation, and starts a new count there.
    pub(crate) fn cut_at(&mut self, operations: usize) {
        let mut cursor = Cursor { next: 0, expectation: self.start.clone() };
        self.advance(&mut cursor, operations);
        self.start = cursor.expectation.clone();
        self.now = cursor.expectation;
        self.events.clear();
    }

    /// After everything.
    pub(crate) const fn now(&self) -> &Expectation {
        &self.now
    }

    /// Applies the requests and answers up to the time of an operation to an expectation.
    pub(crate) fn advance(&self, cursor: &mut Cursor, operations: usize) {
        while let Some((at, event)) = self.events.get(cursor.next) {
            if *at > operations {
                break;
            }
            cursor.expectation.apply(event);
            cursor.next += 1;
        }
    }
}

/// An expectation that walks through a history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cursor {
    next: usize,
    pub(crate) expectation: Expectation,
}

/// What a store may and must hold at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expectation {
    pub(crate) lives: Vec<Life>,
}

/// What one incarnation of one session may and must hold.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) id: String,
    pub(crate) incarnation: Option<Incarnation>,
    /// Must be there.
    pub(crate) acked: Vec<Batch>,
    /// May be there, in this order.
    pub(crate) pending: Vec<Batch>,
    /// The number of these, from the first on, that were answered in the weaker durability.
    pub(crate) written: usize,
    pub(crate) acked_deltas: Vec<NewDelta>,
    pub(crate) pending_deltas: Vec<NewDelta>,
    pub(crate) written_deltas: usize,
    pub(crate) place: Place,
    /// Where it may be instead.
    pub(crate) moving: Option<Place>,
}

impl Expectation {
    fn apply(&mut self, event: &Event) {
        if let Event::CreateBegun { id } = event {
            self.lives.push(Life::begun(id));
            return;
        }
        if let Some(life) = event.life().and_then(|life| self.lives.get_mut(life)) {
            life.apply(event);
        }
    }

    /// A process that recovers showed this incarnation, with this many unanswered batches and
    /// deltas.
    pub(crate) fn shown(&mut self, life: LifeId, incarnation: Incarnation, kept: Kept) {
        let Kept { batches, deltas } = kept;
        self.apply(&Event::CreateDone { life, incarnation });
        self.apply(&Event::Reopened { life, batches, deltas });
    }

    /// The same if only the process ended: what was answered must be there, synced or not.
    pub(crate) fn without_power_cut(&self) -> Self {
        let mut kept = self.clone();
        kept.lives.iter_mut().for_each(Life::sync);
        kept
    }

    /// Identifies this state of the oracle.
    pub(crate) fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for life in &self.lives {
            life.hash_into(&mut hasher);
        }
        hasher.finish()
    }
}

impl Event {
    const fn life(&self) -> Option<LifeId> {
        match self {
            Self::CreateBegun { .. } => None,
            Self::CreateDone { life, .. }
            | Self::CreateRefused { life }
            | Self::AppendBegun { life, .. }
            | Self::AppendDone { life }
            | Self::AppendWritten { life }
            | Self::AppendRefused { life }
            | Self::DeltaBegun { life, .. }
            | Self::DeltaDone { life }
            | Self::DeltaWritten { life }
            | Self::DeltaRefused { life }
            | Self::Synced { life }
            | Self::PowerCut { life }
            | Self::Reopened { life, .. }
            | Self::Kept { life, .. }
            | Self::MoveBegun { life, .. }
            | Self::MoveDone { life }
            | Self::Found { life, .. } => Some(*life),
        }
    }
}

impl Life {
    fn begun(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            incarnation: None,
            acked: Vec::new(),
            pending: Vec::new(),
            written: 0,
            acked_deltas: Vec::new(),
            pending_deltas: Vec::new(),
            written_deltas: 0,
            place: Place::Nowhere,
            moving: Some(Place::Live),
        }
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::CreateBegun { .. } => {}
            Event::CreateDone { incarnation, .. } => {
                self.incarnation = Some(*incarnation);
                self.settle_at(Place::Live);
            }
            Event::CreateRefused { .. } => {
                self.pending.clear();
                self.settle_at(Place::Nowhere);
            }
            Event::AppendWritten { .. } => self.written += 1,
            Event::DeltaWritten { .. } => self.written_deltas += 1,
            Event::Synced { .. } => self.sync(),
            Event::PowerCut { .. } => (self.written, self.written_deltas) = (0, 0),
            Event::AppendBegun { batch, .. } => self.pending.push(Arc::clone(batch)),
            Event::AppendDone { .. } => keep_first(&mut self.pending, &mut self.acked, 1, false),
            Event::AppendRefused { .. } => drop(self.pending.pop()),
            Event::DeltaBegun { delta, .. } => self.pending_deltas.push(delta.clone()),
            Event::DeltaDone { .. } => {
                keep_first(&mut self.pending_deltas, &mut self.acked_deltas, 1, false);
            }
            Event::DeltaRefused { .. } => drop(self.pending_deltas.pop()),
            Event::Reopened { batches, deltas, .. } => {
                (self.written, self.written_deltas) = (0, 0);
                keep_first(&mut self.pending, &mut self.acked, *batches, true);
                keep_first(&mut self.pending_deltas, &mut self.acked_deltas, *deltas, true);
            }
            Event::Kept { which, .. } => {
                self.written = 0;
                let pending = std::mem::take(&mut self.pending).into_iter().enumerate();
                let kept = pending.filter(|(place, _)| which.contains(place));
                self.acked.extend(kept.map(|(_, batch)| batch));
            }
            Event::MoveBegun { to, .. } => self.moving = Some(*to),
            Event::MoveDone { .. } => {
                let to = self.moving.unwrap_or(self.place);
                self.settle_at(to);
            }
            Event::Found { at, .. } => self.settle_at(*at),
        }
    }

    /// From now on, what was answered in the weaker durability must be there.
    fn sync(&mut self) {
        keep_first(&mut self.pending, &mut self.acked, self.written, false);
        keep_first(&mut self.pending_deltas, &mut self.acked_deltas, self.written_deltas, false);
        (self.written, self.written_deltas) = (0, 0);
    }

    const fn settle_at(&mut self, place: Place) {
        self.place = place;
        self.moving = None;
    }

    pub(crate) fn may_be(&self, place: Place) -> bool {
        self.place == place || self.moving == Some(place)
    }

    /// The records that must be there, in order.
    pub(crate) fn must(&self) -> impl Iterator<Item = &Envelope<'static>> {
        self.acked.iter().flat_map(|batch| batch.iter())
    }

    fn hash_into(&self, hasher: &mut DefaultHasher) {
        self.id.hash(hasher);
        self.incarnation.hash(hasher);
        (self.place, self.moving).hash(hasher);
        (self.acked.len(), self.acked_deltas.len()).hash(hasher);
        (self.written, self.written_deltas).hash(hasher);
        for batch in self.acked.iter().chain(&self.pending) {
            for record in batch.iter() {
                record.payload.hash(hasher);
            }
        }
        for delta in self.acked_deltas.iter().chain(&self.pending_deltas) {
            (&delta.target, delta.revision, &delta.payload).hash(hasher);
        }
    }
}

fn keep_first<T>(pending: &mut Vec<T>, acked: &mut Vec<T>, count: usize, drop_rest: bool) {
    let count = count.min(pending.len());
    acked.extend(pending.drain(..count));
    if drop_rest {
        pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(text: &str) -> Batch {
        [Envelope::plain("note", 0, format!("{text:?}"))].into()
    }

    fn payloads(life: &Life) -> Vec<&str> {
        life.must().map(|record| &*record.payload).collect()
    }

    #[test]
    fn a_batch_may_be_there_when_asked_and_must_when_answered() {
        let mut history = History::default();
        history.push(0, Event::CreateBegun { id: "s".into() });
        let incarnation = Incarnation::new([1; 16]);
        history.push(3, Event::CreateDone { life: 0, incarnation });
        history.push(3, Event::AppendBegun { life: 0, batch: batch("a") });
        history.push(6, Event::AppendDone { life: 0 });
        let mut cursor = Cursor::default();
        let mut seen = Vec::new();
        for operations in 0..=6 {
            history.advance(&mut cursor, operations);
            let life = &cursor.expectation.lives[0];
            seen.push((life.place, life.pending.len(), payloads(life).len()));
        }
        let (nowhere, live) = ((Place::Nowhere, 0, 0), (Place::Live, 1, 0));
        assert_eq!(seen, [nowhere, nowhere, nowhere, live, live, live, (Place::Live, 0, 1)]);
    }

    #[test]
    fn the_state_before_an_answer_is_not_the_state_after_it() {
        let mut history = History::default();
        history.push(0, Event::CreateBegun { id: "s".into() });
        history.push(0, Event::AppendBegun { life: 0, batch: batch("a") });
        let before = history.now().key();
        history.push(0, Event::AppendDone { life: 0 });
        assert_ne!(before, history.now().key());
    }

    #[test]
    fn reopening_settles_what_was_unanswered() {
        let mut history = History::default();
        history.push(0, Event::CreateBegun { id: "s".into() });
        for text in ["a", "b", "c"] {
            history.push(0, Event::AppendBegun { life: 0, batch: batch(text) });
        }
        history.push(1, Event::Reopened { life: 0, batches: 1, deltas: 0 });
        let life = &history.now().lives[0];
        assert_eq!((payloads(life), life.pending.len()), (vec!["\"a\""], 0));
    }
}
