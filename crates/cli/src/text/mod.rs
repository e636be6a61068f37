//! Text for a terminal: sanitised, of a known width, with short times. Pure.

mod clock_words;
mod flow;
mod fuzzy;
mod numbers;
mod sanitize;
mod shell;
mod short_ids;
mod width;

pub(crate) use clock_words::{age, stamp};
pub(crate) use flow::Flow;
pub(crate) use fuzzy::{Query, Score};
pub(crate) use numbers::{bytes, cost, count, tokens};
pub(crate) use sanitize::{clean_line, clean_tabbed, clean_text, escape_json};
pub(crate) use shell::shell_word;
pub(crate) use short_ids::{short_id, unique_ids};
pub(crate) use width::{fit, fit_end, pad, width, wrap};
