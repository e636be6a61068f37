//! Every bound of the service, by name. What a session may hold is bounded in [`bough_session::limits`].

use std::time::Duration;

/// How long an idempotency key means the call that it was first used for, by default.
pub const IDEMPOTENCY_KEYS: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Largest answer that is kept with an idempotency key, in bytes. After a larger one, a repeated call is carried out again.
pub const KEPT_ANSWER_BYTES_MAX: usize = 16 * 1024;
/// How often a call tries to note its key while others note the same one.
pub const KEY_ATTEMPTS_MAX: u32 = 8;
/// Idempotency keys that a sweep for ended ones reads.
pub const KEYS_PER_SWEEP: usize = 4096;
/// How far the clocks of servers on one store may be apart.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_secs(60);
/// How often a write tries again when others keep changing the session under it.
pub const WRITE_ATTEMPTS_MAX: u32 = 32;
/// The first wait before such a retry; it doubles up to [`WRITE_RETRY_WAIT_MAX`].
pub const WRITE_RETRY_WAIT: Duration = Duration::from_millis(1);
/// The longest wait before such a retry.
pub const WRITE_RETRY_WAIT_MAX: Duration = Duration::from_millis(64);
/// For so many milliseconds after a swap of stores a write waits for a session that the store before still holds.
pub const SWAP_SETTLE_MS: i64 = 5_000;
/// Sessions that are open at once; idle ones beyond that are forgotten.
pub const OPEN_SESSIONS_MAX: usize = 1024;
/// Newest writes of a followed session that are kept for its followers; slower ones read the store.
pub const RECENT_WRITES_MAX: usize = 256;
/// Bytes of the newest writes of all sessions together.
pub const RECENT_WRITES_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Messages of one session that are kept in memory while they stream.
pub const STREAMS_PER_SESSION_MAX: usize = 4;
/// A message that streams and does not grow for this long is closed as aborted.
pub const STREAM_ABANDONED_AFTER: Duration = Duration::from_secs(300);
/// Open streams that a sweep for abandoned ones reads at a time.
pub const OPEN_STREAMS_PER_READ: usize = 256;
/// Records of a session being made (a fork) that are held in memory before they are written out of sight.
pub const BUILD_BATCH_RECORDS: usize = 1000;
/// Bytes of those records: that many, and one record more, are held at the most.
pub const BUILD_BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Entries that one call hides.
pub const HIDE_ENTRIES_MAX: usize = 1000;
/// Ids that one call asks entries for.
pub const ENTRIES_IDS_MAX: usize = 1000;
/// Entries and records that one call of `session::entries` reads; then its page ends, and the next call goes on.
pub const ENTRIES_LOOKED_AT_MAX: usize = 10_000;
/// Bytes of a page of entries, when the caller does not say.
pub const ENTRIES_PAGE_BYTES: usize = 8 * 1024 * 1024;
/// Bytes of the largest page of entries; one entry more at the most.
pub const ENTRIES_PAGE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Keys that one call asks documents for.
pub const DOCUMENT_KEYS_PER_CALL_MAX: usize = 1000;
/// How often a read of documents begins again because another process has compacted their log meanwhile.
pub const DOCUMENT_READ_ATTEMPTS_MAX: u32 = 8;
/// About how many bytes a record of a document takes beside its key and its value.
pub const DOCUMENT_RECORD_OVERHEAD: usize = 512;
/// A log of documents is compacted when its overwritten records have more bytes than its live ones, and more than this.
pub const DOCUMENT_DEAD_BYTES_MIN: usize = 1024 * 1024;
/// About how many bytes a key takes in memory beside its own.
pub const DOCUMENT_KEY_OVERHEAD: usize = 160;
/// Bytes that the keys of one scope may take in memory.
pub const DOCUMENT_SCOPE_KEYS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes that the keys of all scopes in use take in memory; beyond that, they are read again when they are needed.
pub const DOCUMENT_KEYS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of records that are read at a time when the keys of a scope are read.
pub const DOCUMENT_INDEX_READ_BYTES: usize = 4 * 1024 * 1024;
/// Records that are read at a time then: the first time, and at the most.
pub const DOCUMENT_INDEX_READ_RECORDS: (usize, usize) = (64, 4096);
/// How many entries a scan over a path reads at a time.
pub const SCAN_ENTRIES: usize = 500;
/// Bytes of the messages of one context as an answer. A longer one is read in pages of messages, or cut by a budget.
pub const CONTEXT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// About how many bytes a message of a context takes beside its text.
pub const CONTEXT_MESSAGE_OVERHEAD: usize = 1024;
/// Labels and other bookkeeping between a message and its siblings that are looked through.
pub const SIBLING_BOOKKEEPING_MAX: usize = 32;

/// How often a server checks the sessions that changed, to compact them.
pub const COMPACTION_REST: Duration = Duration::from_secs(1);
/// How many changes it reads at a time to find those sessions.
pub const COMPACTION_CHANGES_PER_READ: usize = 1_000;

/// Sums of `session::stats`, when the caller does not say.
pub const STATS_ROWS: usize = 1000;
/// Most sums of `session::stats`.
pub const STATS_ROWS_MAX: usize = 10_000;
/// Characters of what a node of a tree shows of its entry.
pub const TREE_PREVIEW_CHARS_MAX: usize = 120;
/// Records that are read for one page of a tree; a page may end before it is full.
pub const TREE_RECORDS_PER_PAGE_MAX: usize = 16 * SCAN_ENTRIES;
/// How far before their ends two branches may part to be compared, in entries.
pub const COMPARED_ENTRIES_MAX: usize = 20_000;

/// Records that a feed reads at a time.
pub const FEED_RECORDS_PER_READ: usize = 256;
/// How many entries a replay of a new store looks up at once.
pub const REPLAY_LOOKUPS_MAX: usize = 64;
/// Sessions that a replay begins at once.
pub const REPLAY_SESSIONS_AT_ONCE: usize = 16;
/// Records of each of them that it reads at first; all together are as many as it reads at a time later.
pub const REPLAY_FIRST_RECORDS: usize = FEED_RECORDS_PER_READ / REPLAY_SESSIONS_AT_ONCE;
/// Entries of a session that changed long after they were added, which a replay remembers; if there are more, it looks
/// each entry up.
pub const REPLAY_CHANGED_ENTRIES_MAX: usize = 100_000;
/// Records that a subscriber of all sessions reads at a time while it catches up.
pub const FEED_COLD_RECORDS_PER_READ: usize = 64;
/// Records that a reader which begins in the middle reads at a time to find earlier values of changed fields.
pub const FEED_LOOK_BACK_RECORDS: usize = 64;
/// How often it does so; earlier values are found by a fold from the first record.
pub const FEED_LOOK_BACK_READS_MAX: usize = 4;
/// Events that a subscriber takes at a time.
pub const FEED_PAGE: usize = 16;
/// Bytes of those events, unless a single one has more.
pub const FEED_PAGE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of events that a subscriber reads at a time from the log of a session, unless a single one has more.
pub const FEED_COLD_PAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Changed sessions that a feed of all sessions reads at a time.
pub const FEED_CHANGES_PER_READ: usize = 256;
/// How often a feed repeats a read that shows less than an earlier one, while a writer takes a log over.
pub const FEED_SHORT_READS_MAX: u32 = 100;
/// The pause between two such reads.
pub const FEED_SHORT_READ_PAUSE: Duration = Duration::from_millis(20);
/// Newest events of a watched session that its subscribers share; a slower one reads the log.
pub const SESSION_RING_EVENTS_MAX: usize = 256;
/// Bytes of those events.
pub const SESSION_RING_BYTES_MAX: usize = 1024 * 1024;
/// Newest events of all sessions that their subscribers share.
pub const GLOBAL_RING_EVENTS_MAX: usize = 4096;
/// Bytes of those events.
pub const GLOBAL_RING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long the feed of all sessions rests for each event that it found in a round of reading: a store that is busy is read in
/// larger pieces, one that is not at once.
pub const GLOBAL_PAUSE_PER_EVENT: Duration = Duration::from_micros(250);
/// The longest of those rests.
pub const GLOBAL_PAUSE_MAX: Duration = Duration::from_millis(20);
/// Sessions whose state the feed of all sessions keeps in memory.
pub const GLOBAL_PROJECTORS_MAX: usize = 256;
/// Messages that a feed keeps in memory to show each step of a stream.
pub const PROJECTOR_STREAMS_MAX: usize = 8;
/// Recent deletions that the feed remembers the metadata of.
pub const DELETIONS_REMEMBERED_MAX: usize = 1024;
/// Newest messages that a snapshot of a session shows.
pub const SNAPSHOT_MESSAGES: usize = 50;
/// Sessions of one page of a snapshot of all.
pub const SNAPSHOT_SESSIONS: usize = 100;
/// Longest wait of `session::watch`.
pub const WATCH_WAIT_MAX: Duration = Duration::from_secs(30);

/// Entries that `session::store::put-entry` holds for sessions that do not exist yet.
pub const STAGED_ENTRIES_MAX: usize = 10_000;
/// Sessions that do not exist yet with entries held for them.
pub const STAGED_SESSIONS_MAX: usize = 64;
/// Events of one `session::store::publish-events`.
pub const PUBLISH_EVENTS_MAX: usize = 10_000;
/// Longest text that `session::search` looks for, in bytes.
pub const QUERY_BYTES_MAX: usize = 1024;
/// How long a search waits for the index to take up what was just written; then it says how far the index is.
pub const SEARCH_WAIT: Duration = Duration::from_millis(300);
/// How often a search begins again because the index was made anew meanwhile.
pub const SEARCH_AGAIN_MAX: usize = 2;
/// Candidates of the index that one call compares with the store; a page with fewer hits than asked for has a cursor to the rest.
pub const SEARCH_COMPARED_MAX: usize = 500;
/// Records that a search reads at once to compare all candidates of a session; where there are more, each is read by itself.
pub const SEARCH_END_RECORDS: usize = 512;
/// Changed sessions that the index takes up in one round.
pub const INDEX_CHANGES_PER_ROUND: usize = 256;
/// Text that the index takes up in one round, in bytes; one entry more at the most. A search waits for a round that has begun.
pub const INDEX_BYTES_PER_ROUND: usize = 1024 * 1024;
/// Records of a session that the index reads at a time.
pub const INDEX_RECORDS_PER_READ: usize = 1000;
/// Sessions whose position in the index is kept in memory.
pub const INDEX_KNOWN_MAX: usize = 10_000;
/// Sessions that are compared with the index at a time after a gap.
pub const INDEX_LIST_PAGE: usize = 500;
/// The pause of the index after a round; what is written meanwhile is taken up together.
pub const INDEX_REST: Duration = Duration::from_millis(200);
/// How many times as long as a round the index rests while others write.
pub const INDEX_REST_OF_WRITERS: u32 = 3;
/// The longest such rest.
pub const INDEX_REST_MAX: Duration = Duration::from_millis(800);
/// The pause before the index tries again, when another process updates it, or the store did not answer.
pub const INDEX_RETRY: Duration = Duration::from_millis(100);
/// The longest that the index waits for a wake-up before it reads the store anyway.
pub const INDEX_IDLE: Duration = Duration::from_secs(2);
/// How long a message that streams rests between two times that it is indexed.
pub const INDEX_STREAM_REST: Duration = Duration::from_secs(2);
/// How often a search that waits for the index checks how far the index is.
pub const INDEX_POLL: Duration = Duration::from_millis(5);

/// Calls of one binding that are under way at once; the next event waits for one of them to be answered.
pub const EVENT_CALLS_MAX: usize = 256;
/// Of those, calls with events that a new store replays: the others are for what happens meanwhile.
pub const EVENT_REPLAY_CALLS_MAX: usize = EVENT_CALLS_MAX / 2;
/// Events of a replay that are delivered before a binding looks for live ones.
pub const EVENT_REPLAY_RUN_MAX: usize = 64;
/// A call of a binding's function that is not answered within this time counts as delivered.
pub const EVENT_ANSWER_WAIT: Duration = Duration::from_secs(30);
/// The pause before a binding asks again whether its function, or the store, is there.
pub const EVENT_RETRY_PAUSE: Duration = Duration::from_millis(200);
/// How long the position of a binding is kept after its connection ended.
pub const BINDING_KEPT_FOR: Duration = Duration::from_secs(3600);
/// Bindings of one bus whose position is kept; those whose connections ended first are dropped first.
pub const BINDINGS_KEPT_MAX: usize = 10_000;
/// Bindings of one bus that are known though their position was dropped, so that they get a gap when they come back; the
/// oldest are forgotten first.
pub const BINDINGS_DROPPED_MAX: usize = 10_000;
/// How often positions are dropped that were kept long enough.
pub const BINDINGS_SWEPT_EVERY: Duration = Duration::from_secs(60);
/// How often the positions that moved are written. After a kill, the events of this time may be delivered again.
pub const BINDINGS_WRITTEN_EVERY: Duration = Duration::from_millis(200);
/// How often a binding that gets no events notes how far it has read.
pub const BINDING_POSITION_NOTED_EVERY: Duration = Duration::from_secs(5);

/// Recordings of a store that are open at once.
pub const RECORDINGS_MAX: usize = 256;
/// For how many milliseconds an idle recording stays open.
pub const RECORDING_KEPT_FOR_MS: i64 = 15 * 60 * 1000;
/// Longest name of a recording, in bytes.
pub const RECORDING_ID_BYTES_MAX: usize = 256;
/// Loops that a resumed recording remembers, to refuse events of loops that began before it.
pub const RECORDING_LOOPS_REMEMBERED_MAX: usize = 100_000;
/// Events of one `session::record`.
pub const RECORDING_EVENTS_PER_CALL_MAX: usize = 10_000;
/// Notices that one `session::record` answers with.
pub const RECORDING_NOTICES_MAX: usize = 100;
/// Recorded sessions that are kept in memory for queries.
pub const RECORDED_SESSIONS_CACHED_MAX: usize = 8;
/// Records of a recorded session that are read at a time.
pub const RECORDED_SESSION_RECORDS_PER_READ: usize = 1000;
/// Sessions that `session::spawns` reads.
pub const SPAWN_SESSIONS_MAX: usize = 256;

/// Numbers of one request that are taken as integers although they are written with a fraction of 0, such as 5.0. The request
/// is read again for each.
pub const WHOLE_NUMBERS_MAX: usize = 16;
