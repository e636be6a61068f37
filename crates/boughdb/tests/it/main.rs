//! The library as a program uses it: branches, documents, replies, recording, and its names.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "in a test a panic is the message"
)]

mod branches;
mod documents;
mod examples;
mod recording;
mod replies;
