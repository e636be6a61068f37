//! Every bound of the command line, by name.

use std::time::Duration;

/// How often an index that does not come further is asked again before a command goes on without it.
pub(crate) const INDEX_STALLED_ROUNDS: u32 = 50;
/// Hits that the search screen shows.
pub(crate) const SEARCH_HITS_PAGE: usize = 100;

/// Sessions that a screen reads at a time.
pub(crate) const PICKER_PAGE: usize = 100;
/// Sessions that a search reads at a time while it goes through all of them.
pub(crate) const SEARCH_PAGE: usize = 500;
/// Sessions that the picker keeps at hand; beyond that, a search with `bough ls` is the way.
pub(crate) const PICKER_SESSIONS_MAX: usize = 200_000;
/// Entries of a session that are read at a time.
pub(crate) const ENTRIES_PAGE: usize = 500;
/// Entries that are read at a time where only their outline is kept.
pub(crate) const OUTLINE_PAGE: usize = 2_000;
/// Messages that the session screen reads at a time.
pub(crate) const TRANSCRIPT_PAGE: usize = 50;
/// Messages that the session screen keeps at hand.
pub(crate) const TRANSCRIPT_ITEMS_MAX: usize = 20_000;
/// Lines of one block that the session screen shows.
pub(crate) const BLOCK_LINES_MAX: usize = 2_000;
/// Lines of a block that is folded away.
pub(crate) const FOLDED_LINES: usize = 1;
/// Candidates that are named when a session argument fits several.
pub(crate) const CANDIDATES_SHOWN: usize = 8;
/// Sessions that are looked through for a title.
pub(crate) const TITLE_PAGE: usize = 200;
/// Longest wait of one question for news.
pub(crate) const NEWS_WAIT: Duration = Duration::from_secs(20);
/// Longest wait for a connection to a server.
pub(crate) const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Longest wait for an answer of a server; news may take [`NEWS_WAIT`].
pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// Largest answer of a server.
pub(crate) const ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Largest key file of a server.
pub(crate) const SERVER_KEY_BYTES_MAX: u64 = 4 * 1024;
/// Largest file that is read whole: a summary, an edited message, a configuration.
pub(crate) const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Largest summary that a command may print.
pub(crate) const SUMMARY_BYTES_MAX: usize = 1024 * 1024;
/// Lines of agent events that may wait to be recorded.
pub(crate) const EVENT_LINES_WAITING: usize = 1_024;
/// Longest line of agent events.
pub(crate) const EVENT_LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Lines that are not events, and files that are not sessions, of which each is told.
pub(crate) const PASSED_OVER_TOLD: u64 = 10;
/// Fields of events that are not kept of which each is told.
pub(crate) const UNKNOWN_FIELDS_TOLD: usize = 20;
/// What changes is gathered for so long before a server looks whether it has to be compacted.
pub(crate) const COMPACT_SETTLE: Duration = Duration::from_secs(1);
/// How many changes a server reads at a time to find the sessions that it looks at.
pub(crate) const CHANGES_PER_LOOK: usize = 1_000;
