//! The HTTP API, made from the function table.

mod body;
mod body_lines;
mod bounds;
mod calls;
mod conditions;
mod delta_lines;
mod delta_stream;
mod event_text;
mod events;
mod fields;
mod health;
mod logins;
mod message_events;
mod names;
mod openapi;
mod pages;
mod plain_words;
mod problem;
mod record;
mod reference;
mod router;
mod stream_bytes;
mod stream_request;
mod streamed;

pub(crate) use body::read_json;
pub(crate) use calls::{take_request, take_stream, within};
pub(crate) use names::nearest;
pub(crate) use problem::{EXAMPLE_MESSAGE, Problem, ProblemCode};
pub(crate) use router::http_router;
pub(crate) use stream_bytes::StreamBytes;
pub(crate) use streamed::streamed;
