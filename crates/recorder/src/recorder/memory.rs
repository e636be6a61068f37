//! Ids that are remembered for a while.

use std::collections::{HashSet, VecDeque};

use crate::limits::REMEMBERED_IDS_MAX;

/// The ids that were added last, up to a bound.
#[derive(Debug, Default)]
pub(super) struct RecentIds {
    known: HashSet<String>,
    order: VecDeque<String>,
}

impl RecentIds {
    pub(super) fn contains(&self, id: &str) -> bool {
        self.known.contains(id)
    }

    pub(super) fn add(&mut self, id: &str) {
        if !self.known.insert(id.to_owned()) {
            return;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > REMEMBERED_IDS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_ids_are_forgotten_first() {
        let mut ids = RecentIds::default();
        for at in 0..=REMEMBERED_IDS_MAX {
            ids.add(&at.to_string());
            ids.add(&at.to_string());
        }
        assert!(!ids.contains("0"));
        assert!(ids.contains("1"));
        assert!(ids.contains(&REMEMBERED_IDS_MAX.to_string()));
    }
}
