//! The rules: what each function means, one file a subject.

pub(crate) mod append;
pub(crate) mod branching;
pub(crate) mod config;
pub(crate) mod documents;
pub(crate) mod entries;
pub(crate) mod finish;
pub(crate) mod fork;
pub(crate) mod given;
pub(crate) mod hide;
pub(crate) mod lifecycle;
pub(crate) mod listing;
pub(crate) mod meta;
pub(crate) mod raw;
pub(crate) mod reading;
pub(crate) mod repeats;
pub(crate) mod search;
pub(crate) mod siblings;
pub(crate) mod staging;
pub(crate) mod stats;
pub(crate) mod store_protocol;
pub(crate) mod trash;
pub(crate) mod tree;
pub(crate) mod update;
pub(crate) mod views;
pub(crate) mod watching;
