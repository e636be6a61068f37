//! Every bound of search, by name.

use std::time::Duration;

/// Longest query, in bytes.
pub const QUERY_BYTES_MAX: usize = 1024;
/// Words, phrases and filters in one query.
pub const QUERY_ITEMS_MAX: usize = 32;
/// Terms in one word or phrase; a longer one is an error.
pub const PHRASE_TERMS_MAX: usize = 64;
/// Fewest letters of a prefix that the index reads: so many words begin with fewer that reading them takes longer than
/// comparing the texts.
pub const PREFIX_CHARS_MIN: usize = 2;
/// Longest term, in bytes. A longer one is cut, in documents and in queries alike.
pub const TERM_BYTES_MAX: usize = 64;
/// Longest word, in letters and digits, that is split into parts (`parseConfig`). A longer one is encoded data.
pub const SPLIT_LETTERS_MAX: usize = 64;
/// Characters of a term in a script that is written without spaces.
pub const GRAM_CHARS: usize = 3;
/// Newest matches that are ranked together. Older ones follow in later pages, ranked among themselves.
pub const RANKED_TOGETHER: usize = 1000;
/// The ranking ignores a word that is in more documents than this: counting those takes longer than the search.
pub const RANKED_WORD_MAX: usize = 10_000;
/// A date range of up to this many months is searched as terms of the index; a longer one is compared row by row.
pub const MONTH_TERMS_MAX: usize = 36;
/// A search of up to this many sessions is searched as terms of the index; with more, sessions are
/// compared row by row.
pub const SESSION_TERMS_MAX: usize = 100;
/// Longest part of a metadata value that the index compares, in bytes; the caller compares the rest.
pub const METADATA_VALUE_BYTES: usize = 256;
/// Characters of a snippet.
pub const SNIPPET_CHARS: usize = 200;
/// Characters of a snippet before its first highlight.
pub const SNIPPET_LEAD_CHARS: usize = 50;
/// Highlights of a snippet.
pub const HIGHLIGHTS_MAX: usize = 32;
/// Connections of an index that search at the same time; further searches open one of their own.
pub const READERS_KEPT: usize = 4;
/// How long a writer waits for another process's transaction.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often opening an index is tried while another process holds it.
pub const OPEN_RETRIES_MAX: u32 = 100;
/// The pause between two such tries.
pub const OPEN_PAUSE: Duration = Duration::from_millis(20);
