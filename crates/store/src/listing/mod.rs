//! Lists: what a query matches, in which order, and where a page ends.

mod cursor;
mod page;
mod usage;

pub(crate) use cursor::{ListCursor, Phase};
pub(crate) use page::{ListItem, compose, key_of, list, search_text};
pub(crate) use usage::{About, report, sums};
