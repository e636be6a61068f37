//! Words made ready for a terminal: harmless, of a known width, times in few letters. Pure.

mod clock_words;
mod fuzzy;
mod numbers;
mod sanitize;
mod width;

pub(crate) use clock_words::{age, stamp};
pub(crate) use fuzzy::{Query, Score};
pub(crate) use numbers::{bytes, cost, count, tokens};
pub(crate) use sanitize::{clean_line, clean_text, escape_json};
pub(crate) use width::{fit, pad, width, wrap};
