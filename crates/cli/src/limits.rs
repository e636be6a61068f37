//! Every bound of the command line, by name.

use std::time::Duration;

/// How often a search asks for the index that another process updates before it answers without the rest. Each time
/// takes up to 300 ms, so this is a second and a half.
pub(crate) const INDEX_ELSEWHERE_ROUNDS: u32 = 5;
/// How often the index that another process updates is asked again, without progress, before a rebuild gives up.
pub(crate) const INDEX_STALLED_ROUNDS: u32 = 50;
/// Hits that the search screen reads at a time.
pub(crate) const SEARCH_HITS_PAGE: usize = 100;

/// Sessions that a screen reads at a time.
pub(crate) const PICKER_PAGE: usize = 100;
/// Sessions that a search reads at a time while it goes through all of them.
pub(crate) const SEARCH_PAGE: usize = 500;
/// Sessions that the picker holds in memory; `bough ls` searches more.
pub(crate) const PICKER_SESSIONS_MAX: usize = 200_000;
/// Session files of pi that the picker lists, the last changed first.
pub(crate) const PI_FILES_MAX: usize = 2_000;
/// How much of a session file of pi is read for a list.
pub(crate) const PI_FILE_HEAD_BYTES: usize = 64 * 1024;
/// Entries of a session that are read at a time.
pub(crate) const ENTRIES_PAGE: usize = 500;
/// Entries that are read at a time where only their outline is kept.
pub(crate) const OUTLINE_PAGE: usize = 2_000;
/// Messages that the session screen reads at a time.
pub(crate) const TRANSCRIPT_PAGE: usize = 50;
/// Messages that the session screen holds in memory.
pub(crate) const TRANSCRIPT_ITEMS_MAX: usize = 20_000;
/// Lines of one block that the session screen shows.
pub(crate) const BLOCK_LINES_MAX: usize = 2_000;
/// Lines that are shown of a folded block.
pub(crate) const FOLDED_LINES: usize = 1;
/// Candidates that are named when an argument matches several sessions.
pub(crate) const CANDIDATES_SHOWN: usize = 8;
/// Sessions that are searched for a title at a time.
pub(crate) const TITLE_PAGE: usize = 200;
/// Longest wait of one request for events.
pub(crate) const EVENTS_WAIT: Duration = Duration::from_secs(20);
/// A growing line is ended for a program that reads it, if nothing is added for this long.
pub(crate) const LINE_REST: Duration = Duration::from_secs(2);
/// Longest wait for a connection to a server.
pub(crate) const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Longest wait for an answer of a server; a request for events may take [`EVENTS_WAIT`].
pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// Longest wait for a health answer of a server.
pub(crate) const HEALTH_WAIT: Duration = Duration::from_secs(5);
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
/// Largest session file of phi-core that is recorded.
pub(crate) const SESSION_FILE_BYTES_MAX: u64 = 4 << 30;
/// Lines that are not events, and files that are not sessions, that are reported one by one.
pub(crate) const PASSED_OVER_TOLD: u64 = 10;
/// Unknown fields of events that are reported one by one.
pub(crate) const UNKNOWN_FIELDS_TOLD: usize = 20;
/// How often `bough serve --demo` shows an agent at work.
pub(crate) const DEMO_ROUNDS_MAX: u32 = 30;
/// The pause in between.
pub(crate) const DEMO_REST: Duration = Duration::from_secs(20);
/// Messages from and answers to a client of the Model Context Protocol that may wait.
pub(crate) const MCP_LINES_WAITING: usize = 64;
