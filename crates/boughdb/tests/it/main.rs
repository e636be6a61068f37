//! The library as a program uses it: branches, documents, replies, recording, and its names.

mod branches;
mod documents;
mod examples;
mod recording;
mod replies;
