//! Every bound of the server, by name. What a session may hold is bounded in `bough_session::limits`; what a call may
//! ask for, in `bough_service::limits`. Bounds that the configuration can change have their default here.

use std::time::Duration;

/// Largest configuration file.
pub const SETTINGS_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// How often the configuration and token files are checked for changes.
pub const SETTINGS_POLL: Duration = Duration::from_millis(500);
/// Most tokens of one server.
pub const TOKENS_MAX: usize = 10_000;
/// Largest token without its secret, as compact JSON.
pub const TOKEN_RECORD_BYTES_MAX: usize = 4 * 1024;
/// Largest token file: the maximum of tokens, each of maximal size, and a file that was written before these bounds.
pub const TOKENS_FILE_BYTES_MAX: u64 =
    (TOKENS_MAX * (TOKEN_RECORD_BYTES_MAX + 2)) as u64 + SETTINGS_FILE_BYTES_MAX;
/// How long a token is listed after it was revoked or expired.
pub const ENDED_TOKENS_KEPT: Duration = Duration::from_secs(30 * 86_400);
/// Longest token that is parsed, in bytes.
pub const TOKEN_BYTES_MAX: usize = 256;
/// How long a browser's login is valid.
pub const LOGIN_TIME: Duration = Duration::from_secs(12 * 3600);
/// How long a ticket for a stream is valid; it is used at once.
pub const TICKET_TIME: Duration = Duration::from_secs(60);
/// Most logins, and most tickets, of one caller; the oldest is dropped.
pub const PASSES_PER_CALLER_MAX: usize = 64;
/// Most logins and tickets together.
pub const PASSES_MAX: usize = 65_536;

/// Largest body of a request; a batch of messages with images is some tens of megabytes.
pub const BODY_BYTES: usize = 64 * 1024 * 1024;
/// Largest message on the bus, in either direction.
pub const BUS_MESSAGE_BYTES: usize = 64 * 1024 * 1024;
/// Most open connections of one listener.
pub const CONNECTIONS: usize = 4096;
/// Connections that are closed when the system has no descriptor left, so that sessions can be opened: those that wait
/// for their peers.
pub const DESCRIPTORS_FREED: usize = 64;
/// How long a server that wants a Unix socket waits for another one that is starting or ending on it.
pub const SOCKET_WAIT: Duration = Duration::from_secs(30);
/// Most requests that are handled at once, and most bodies that are read at once before that: the body that has waited
/// longest gives way to another one.
pub const REQUESTS: usize = 1024;
/// Most live streams at once.
pub const STREAMS: usize = 2048;
/// A request must begin, with all its headers, within this time; an idle connection is closed after it.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// A body that does not grow for this long is given up.
pub const BODY_STALL_TIMEOUT: Duration = Duration::from_secs(10);
/// A request must be answered within this time.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// A peer that takes nothing for this long is disconnected.
pub const WRITE_STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of a request's address and headers.
pub const HEADER_BYTES_MAX: usize = 32 * 1024;
/// Bytes of a request's address and headers that are read, so that one above [`HEADER_BYTES_MAX`] is refused with a problem. What
/// is larger still is refused while it is read, without a body.
pub const HEADER_BYTES_READ: usize = 4 * HEADER_BYTES_MAX;
/// Most headers of a request.
pub const HEADERS_MAX: usize = 64;
/// Longest `Idempotency-Key`, in bytes.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 256;
/// Most pairs in a query: the longest list, one item a pair, and the other parameters.
pub const QUERY_PAIRS_MAX: usize = 2048;

/// The interval of heartbeats on an idle stream.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// How soon a disconnected reader of a stream connects again.
pub const STREAM_RETRY: Duration = Duration::from_secs(1);
/// Deltas that follow others within this time are sent together; those of one block are one event.
pub const STREAM_BEAT: Duration = Duration::from_millis(25);
/// Messages that a stream remembers as known to its reader, beside those that were added since it joined.
pub const STREAM_MESSAGES_KNOWN_MAX: usize = 256;
/// Bytes after which a piece of a stream's body is sent.
pub const STREAM_PIECE_BYTES: usize = 48 * 1024;
/// A piece of up to this many bytes has few events and is not padded, because a stalled reader keeps its piece.
pub const STREAM_PIECE_FEW_BYTES: usize = 4 * 1024;
/// The capacity of a piece of many events, including the last one, which exceeds the bound. Less than 64 KiB, because
/// the system's allocator consolidates its small blocks whenever a larger one is freed.
pub const STREAM_PIECE_ROOM: usize = STREAM_PIECE_BYTES + 4 * 1024;

/// Events of at least this many bytes are large: their text is made once for all readers, and their bytes count for the
/// token of each reader.
pub const STREAM_LARGE_EVENT_BYTES: usize = 64 * 1024;
/// Bytes of large events that the streams of one token hold at once, for readers that have not received them yet.
pub const STREAM_BYTES_PER_TOKEN: usize = 32 * 1024 * 1024;
/// Bytes that a stream holds before it reads from the store; afterwards it holds the size of what
/// it read.
pub const STREAM_READ_BYTES: usize = 16 * 1024 * 1024;
/// A reader that has taken nothing for this long gives way to waiting readers.
pub const STREAM_STALLED_AFTER: Duration = Duration::from_secs(2);

/// Events of a body that are recorded by one call.
pub const RECORDED_LINES_PER_CALL: usize = 1000;

/// Bytes of lines that are read at once from a body of lines, if they have arrived; they become durable together.
pub const LINES_BATCH_BYTES: usize = 64 * 1024;
/// Longest line of a request with deltas, in bytes.
pub const DELTA_LINE_BYTES_MAX: usize = 1024 * 1024;
/// Acknowledgements that may wait for the writer before no more lines are read.
pub const DELTA_ACKNOWLEDGEMENTS_WAITING: usize = 4096;
/// A request with deltas is ended when no line came for this long; an empty line is enough.
pub const DELTA_STREAM_IDLE: Duration = Duration::from_secs(120);
/// How long a message waits to be finished, or to be continued by another request, after its request ended.
pub const STREAM_END_GRACE: Duration = Duration::from_secs(2);
/// The shortest pause between two sweeps for abandoned streams.
pub const STREAM_SWEEP_MIN: Duration = Duration::from_millis(50);
/// The longest pause between two such sweeps.
pub const STREAM_SWEEP_MAX: Duration = Duration::from_secs(5);

/// Answers that wait for one connection of the bus to take them.
pub const BUS_OUTBOX_MESSAGES: usize = 256;
/// Notices that wait for one connection of the bus: twice the ends of all calls that one worker may owe it.
pub const BUS_NOTICES_WAITING: usize = 2 * BUS_PENDING_PER_CONNECTION;
/// Events that wait for one connection of the bus to take them.
pub const BUS_EVENTS_WAITING: usize = 64;
/// Calls of one connection of the bus that are handled at once.
pub const BUS_CALLS_PER_CONNECTION: usize = 256;
/// Functions that one connection of the bus may host.
pub const BUS_FUNCTIONS_PER_CONNECTION: usize = 4096;
/// Triggers that one connection of the bus may bind.
pub const BUS_TRIGGERS_PER_CONNECTION: usize = 4096;
/// Calls to functions of one connection that wait for its answer.
pub const BUS_PENDING_PER_CONNECTION: usize = 4096;
/// How long a connection of the bus waits for a binding of its own to begin before it reads on.
pub const BUS_BIND_WAIT: Duration = Duration::from_secs(1);
/// Longest name of a function, trigger or trigger type on the bus, in bytes.
pub const BUS_NAME_BYTES_MAX: usize = 1024;
/// Largest bytes that wait in the write buffer of a WebSocket.
pub const BUS_WRITE_BUFFER_BYTES: usize = 256 * 1024;
/// A WebSocket is pinged when nothing came from it for this long.
pub const BUS_PING_AFTER: Duration = Duration::from_secs(30);
/// A WebSocket from which nothing came for this long is closed.
pub const BUS_SILENT_MAX: Duration = Duration::from_secs(90);
/// How long a connection of the bus that ends may take to send its queue, and then to close.
pub const BUS_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a server that ends, with its store closed, waits for clients of the bus to close their connections.
pub const BUS_LAST_BYTES_WAIT: Duration = Duration::from_millis(250);
/// Most functions in one request for details.
pub const BUS_INFO_IDS_MAX: usize = 32;
/// Longest id of a worker's settings.
pub const BUS_CONFIGURATION_ID_BYTES: usize = 128;
/// Workers' settings that one namespace may register.
pub const BUS_CONFIGURATIONS: usize = 1000;
/// How often a change of a worker's settings is retried when others change them at the same time.
pub const BUS_CONFIGURATION_ATTEMPTS: usize = 8;

/// The shortest and the longest pause between two measurements of the store's files.
pub const MEASURE_PAUSE_MIN: Duration = Duration::from_secs(60);
/// See [`MEASURE_PAUSE_MIN`].
pub const MEASURE_PAUSE_MAX: Duration = Duration::from_secs(3600);
/// The pause is this many times as long as the measurement took, so measuring takes a hundredth of the time.
pub const MEASURE_PAUSE_SHARE: u32 = 100;
/// A measurement that is older than this is made anew when somebody looks at it.
pub const MEASURE_FRESH: Duration = Duration::from_secs(10);
/// Measuring for those who look takes a tenth of the time at the most: its pause is this many times as long as it took.
pub const MEASURE_ASKED_SHARE: u32 = 10;
/// Damaged sessions that the result of a verification names.
pub const DAMAGED_SESSIONS_NAMED_MAX: usize = 100;

/// How long a closing server waits for a peer that sends nothing, for a request or for the rest of one.
pub const CLOSING_SILENCE: Duration = Duration::from_secs(1);
/// How long a closing server waits for running requests.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// How often some of the idempotency keys are checked for those whose time has ended.
pub const KEY_SWEEP: Duration = Duration::from_secs(10);
/// How often the trash is checked for sessions whose retention has ended.
pub const TRASH_SWEEP: Duration = Duration::from_secs(3600);
