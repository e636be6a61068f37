//! Lists: what a query matches, in which order, and where a page ends.

mod cursor;
mod page;
mod usage;

pub(crate) use cursor::{ListCursor, Phase};
pub(crate) use page::{ListItem, compose, key_of, list, search_text};
pub(crate) use usage::{About, report, sums};

use bough_session::SessionState;

use crate::StoreError;
use crate::types::{ChangeCursor, ListPage, ListQuery, Listed, UsageQuery, UsageReport};

/// A page of a list over sessions that are all in memory, each with the number of its newest change: for a store outside
/// this crate. `now` is where the feed of all its sessions is.
pub fn list_states(
    states: &[(&SessionState, u64)],
    query: &ListQuery,
    now: ChangeCursor,
) -> Result<ListPage, StoreError> {
    let item =
        |&(state, change): &(&SessionState, u64)| ListItem { listed: Listed::of(state), change };
    list(&states.iter().map(item).collect::<Vec<_>>(), query, now)
}

/// Sums of what sessions used that are all in memory: for a store outside this crate.
#[must_use]
pub fn usage_of_states(states: &[&SessionState], query: &UsageQuery) -> UsageReport {
    let listed: Vec<Listed> = states.iter().map(|state| Listed::of(state)).collect();
    sums(listed.iter(), query)
}
