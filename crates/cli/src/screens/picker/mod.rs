//! The resume picker: sessions of this project or of all, filtered while typing.

mod state;
mod update;
mod view;

#[cfg(test)]
mod tests;

pub(crate) use state::{Answer, Effect, PickerOptions, PickerState, Scope};
pub(crate) use update::{refresh, start, update};
pub(crate) use view::{KEYS, view};
