//! Tokens, the query language and the index that search sessions.
//!
//! A [`Document`] is the searchable text of an entry. The [tokenizer](tokenize) makes terms of documents and of queries
//! alike, a [`SearchIndex`] finds the documents that may match a [`Query`], and [`Query::matches`] decides, on the text
//! that the store has now, whether one does. So an index may lag and never makes an answer wrong.
//!
//! Invariants:
//! - It knows no rules, no HTTP and none of the log's files; the service reads the store and feeds the index.
//! - An index is derived: it can be cleared and built again from the store.
//! - A document that an index does not return does not match or is not indexed yet; one that it returns is compared
//!   with the store.
//! - Every bound is in [`limits`].

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub mod limits;

mod document;
mod error;
mod index;
mod matching;
mod native;
mod query;
mod snippet;
mod tokens;

pub use bough_record::Position;
pub use document::{Document, Field, FieldKind};
pub use error::SearchError;
pub use index::{
    Candidate, CandidatePage, IndexBatch, IndexCounts, IndexLock, IndexedSession, SearchAsk,
    SearchIndex, SessionFacts, SessionPut, SessionUpdate,
};
pub use matching::Matched;
pub use native::{INDEX_FILE, IndexFile, NativeIndex};
pub use query::dates::begin_of_date;
pub use query::{Filters, NameFilter, NameKind, Phrase, Query, QueryError, Word, parse_query};
pub use snippet::{Snippet, snippet};
pub use tokens::{Token, TokenKind, parts, tokenize};
