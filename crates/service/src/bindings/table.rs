//! The bindings, the holder of each, and the positions of those that are free.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::progress::ResumePosition;
use super::spec::BindingSpec;

/// Every binding of one bus.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: HashMap<BindingSpec, Vec<Slot>>,
    count: usize,
    /// How many of them are known only by what they asked for, because their positions were dropped.
    dropped: usize,
}

/// One binding: a spec and an ordinal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) ordinal: u32,
    /// The id that its client gave it last.
    pub(super) trigger_id: String,
    pub(super) hold: Hold,
}

/// Whether a binding is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// The registration with this number does.
    Held(u64),
    /// It is free since a time in milliseconds, and resumes at a position.
    Left { since_ms: i64, position: ResumePosition },
}

impl Slot {
    fn is_dropped(&self) -> bool {
        matches!(self.hold, Hold::Left { position: ResumePosition::Dropped, .. })
    }
}

/// A binding that is free, and since when.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) spec: BindingSpec,
    pub(super) ordinal: u32,
    pub(super) since_ms: i64,
}

/// What a registration got.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// A binding that was not there before.
    New { ordinal: u32 },
    /// A binding that was free.
    Resumed { ordinal: u32, position: ResumePosition },
    /// A binding that another registration held until now.
    Taken { ordinal: u32, from: u64 },
}

impl Table {
    /// Bindings that are held or have a position.
    pub(super) const fn kept(&self) -> usize {
        self.count - self.dropped
    }

    /// Bindings whose positions were dropped.
    pub(super) const fn dropped(&self) -> usize {
        self.dropped
    }

    /// Gives a binding to a registration: the one with its trigger id, else the free one that was left last, else a new
    /// one. Equal bindings call one function, so the one that was left last is the furthest.
    pub(super) fn claim(&mut self, spec: &BindingSpec, trigger_id: &str, holder: u64) -> Claim {
        let slots = self.slots.entry(spec.clone()).or_default();
        let left = |slot: &&mut Slot| match slot.hold {
            Hold::Left { since_ms, .. } => Some((since_ms, Reverse(slot.ordinal))),
            Hold::Held(_) => None,
        };
        let found = match slots.iter().position(|slot| slot.trigger_id == trigger_id) {
            Some(index) => slots.get_mut(index),
            None => slots.iter_mut().filter(|slot| left(slot).is_some()).max_by_key(left),
        };
        if let Some(slot) = found {
            trigger_id.clone_into(&mut slot.trigger_id);
            let ordinal = slot.ordinal;
            return match std::mem::replace(&mut slot.hold, Hold::Held(holder)) {
                Hold::Held(from) => Claim::Taken { ordinal, from },
                Hold::Left { position, .. } => {
                    self.dropped -= usize::from(position == ResumePosition::Dropped);
                    Claim::Resumed { ordinal, position }
                }
            };
        }
        let is_free = |ordinal: &u32| slots.iter().all(|slot| slot.ordinal != *ordinal);
        let ordinal = (0..).find(is_free).unwrap_or(u32::MAX);
        let hold = Hold::Held(holder);
        slots.push(Slot { ordinal, trigger_id: trigger_id.to_owned(), hold });
        self.count += 1;
        Claim::New { ordinal }
    }

    /// Puts in a binding that was found in storage.
    pub(super) fn restore(&mut self, spec: BindingSpec, slot: Slot) {
        self.dropped += usize::from(slot.is_dropped());
        self.slots.entry(spec).or_default().push(slot);
        self.count += 1;
    }

    /// A binding that a registration holds.
    pub(super) fn get(&self, spec: &BindingSpec, ordinal: u32) -> Option<&Slot> {
        self.slots.get(spec)?.iter().find(|slot| slot.ordinal == ordinal)
    }

    /// Notes that a registration does not hold its binding any more.
    pub(super) fn leave(
        &mut self,
        spec: &BindingSpec,
        ordinal: u32,
        position: ResumePosition,
        since_ms: i64,
    ) {
        let Some(slots) = self.slots.get_mut(spec) else { return };
        let Some(slot) = slots.iter_mut().find(|slot| slot.ordinal == ordinal) else { return };
        self.dropped -= usize::from(slot.is_dropped());
        slot.hold = Hold::Left { since_ms, position };
        self.dropped += usize::from(slot.is_dropped());
    }

    pub(super) fn remove(&mut self, spec: &BindingSpec, ordinal: u32) {
        let Some(slots) = self.slots.get_mut(spec) else { return };
        for removed in slots.extract_if(.., |slot| slot.ordinal == ordinal) {
            self.count -= 1;
            self.dropped -= usize::from(removed.is_dropped());
        }
        if slots.is_empty() {
            self.slots.remove(spec);
        }
    }

    /// Bindings that have a position and have been free since before a time.
    pub(super) fn left_before(&self, time_ms: i64) -> Vec<Left> {
        let kept = self.left().filter(|(slot, _)| !slot.is_dropped());
        kept.filter(|(_, left)| left.since_ms < time_ms).map(|(_, left)| left).collect()
    }

    /// The binding with a position that has been free for the longest time.
    pub(super) fn left_longest(&self) -> Option<Left> {
        let kept = self.left().filter(|(slot, _)| !slot.is_dropped());
        kept.map(|(_, left)| left).min_by_key(|left| left.since_ms)
    }

    /// The binding without a position that has been free for the longest time.
    pub(super) fn dropped_longest(&self) -> Option<Left> {
        let dropped = self.left().filter(|(slot, _)| slot.is_dropped());
        dropped.map(|(_, left)| left).min_by_key(|left| left.since_ms)
    }

    fn left(&self) -> impl Iterator<Item = (&Slot, Left)> {
        let all =
            self.slots.iter().flat_map(|(spec, slots)| slots.iter().map(move |slot| (spec, slot)));
        all.filter_map(|(spec, slot)| match slot.hold {
            Hold::Left { since_ms, .. } => {
                Some((slot, Left { spec: spec.clone(), ordinal: slot.ordinal, since_ms }))
            }
            Hold::Held(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::feed::FeedCursor;

    fn spec(function: &str) -> BindingSpec {
        BindingSpec::new("session::created", function, "", &json!({}))
    }

    fn position(number: u64) -> ResumePosition {
        let cursor: FeedCursor = format!("all.{number:064}").parse().unwrap();
        ResumePosition::After(cursor)
    }

    #[test]
    fn a_binding_is_known_by_what_it_asks_for() {
        let mut table = Table::default();
        assert_eq!(table.claim(&spec("f"), "t1", 1), Claim::New { ordinal: 0 });
        table.leave(&spec("f"), 0, position(1), 0);
        let resumed = Claim::Resumed { ordinal: 0, position: position(1) };
        assert_eq!(table.claim(&spec("f"), "another id", 2), resumed);
        assert_eq!(table.claim(&spec("g"), "another id", 3), Claim::New { ordinal: 0 });
        assert_eq!(table.kept(), 2);
    }

    #[test]
    fn equal_bindings_have_ordinals_and_keep_their_ids() {
        let mut table = Table::default();
        assert_eq!(table.claim(&spec("f"), "a", 1), Claim::New { ordinal: 0 });
        assert_eq!(table.claim(&spec("f"), "b", 2), Claim::New { ordinal: 1 });
        assert_eq!(table.claim(&spec("f"), "b", 3), Claim::Taken { ordinal: 1, from: 2 });
        table.leave(&spec("f"), 0, position(1), 0);
        table.leave(&spec("f"), 1, position(2), 0);
        assert_eq!(
            table.claim(&spec("f"), "b", 4),
            Claim::Resumed { ordinal: 1, position: position(2) }
        );
        assert_eq!(
            table.claim(&spec("f"), "c", 5),
            Claim::Resumed { ordinal: 0, position: position(1) }
        );
        table.remove(&spec("f"), 0);
        table.leave(&spec("f"), 1, position(3), 0);
        let survivor = Claim::Resumed { ordinal: 1, position: position(3) };
        assert_eq!(table.claim(&spec("f"), "d", 6), survivor, "the one that is left is found");
        assert_eq!(table.claim(&spec("f"), "e", 7), Claim::New { ordinal: 0 });
    }

    #[test]
    fn the_place_that_was_left_last_is_taken_first() {
        let mut table = Table::default();
        for (holder, id) in ["a", "b", "c"].into_iter().enumerate() {
            table.claim(&spec("f"), id, holder as u64);
        }
        for (ordinal, since_ms) in [(0, 10), (1, 30), (2, 20)] {
            table.leave(&spec("f"), ordinal, position(u64::from(ordinal)), since_ms);
        }
        for (holder, ordinal) in [(4, 1), (5, 2), (6, 0)] {
            let resumed = Claim::Resumed { ordinal, position: position(u64::from(ordinal)) };
            assert_eq!(table.claim(&spec("f"), &format!("new {holder}"), holder), resumed);
        }
    }

    #[test]
    fn those_that_left_first_go_first() {
        let mut table = Table::default();
        for (holder, function) in ["f", "g", "h"].into_iter().enumerate() {
            table.claim(&spec(function), "t", holder as u64);
        }
        table.leave(&spec("f"), 0, ResumePosition::Start, 20);
        table.leave(&spec("g"), 0, ResumePosition::Start, 10);
        let g = || Left { spec: spec("g"), ordinal: 0, since_ms: 10 };
        assert_eq!(table.left_longest(), Some(g()));
        assert_eq!(table.left_before(20), [g()]);
        assert_eq!(table.left_before(21).len(), 2);
        table.leave(&spec("g"), 0, ResumePosition::Dropped, 10);
        assert_eq!(table.left_longest().map(|left| left.spec), Some(spec("f")));
        assert_eq!(table.left_before(21).len(), 1);
        assert_eq!(table.dropped_longest(), Some(g()));
    }

    #[test]
    fn bindings_without_a_position_are_counted_apart() {
        let mut table = Table::default();
        for (holder, function) in ["f", "g", "h"].into_iter().enumerate() {
            table.claim(&spec(function), "t", holder as u64);
            table.leave(&spec(function), 0, ResumePosition::Dropped, 10);
        }
        let hold = Hold::Left { since_ms: 1, position: ResumePosition::Dropped };
        table.restore(spec("i"), Slot { ordinal: 0, trigger_id: "t".to_owned(), hold });
        assert_eq!((table.kept(), table.dropped()), (0, 4));
        table.leave(&spec("f"), 0, ResumePosition::Dropped, 20);
        table.remove(&spec("g"), 0);
        assert_eq!((table.kept(), table.dropped()), (0, 3));
        let resumed = Claim::Resumed { ordinal: 0, position: ResumePosition::Dropped };
        assert_eq!(table.claim(&spec("h"), "another id", 9), resumed);
        assert_eq!((table.kept(), table.dropped()), (1, 2));
    }
}
