//! Every bound of the protocol, by name.

use std::time::Duration;

/// Longest line of a conversation over lines, in bytes; a longer one is refused and skipped.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Requests of one conversation that run at once; further ones wait.
pub const REQUESTS_AT_ONCE: usize = 64;
/// How long running requests may take to end after the client has gone.
pub const END_WAIT: Duration = Duration::from_secs(10);

/// Items on a page of a tool, when the caller does not say.
pub const PAGE: usize = 20;
/// Most items on a page of a tool.
pub const PAGE_MAX: usize = 100;
/// Bytes of the messages in one answer; a single larger message is left out, and the answer says so.
pub const PAGE_BYTES_MAX: usize = 256 * 1024;
/// Resources on a page of their list.
pub const RESOURCES_PAGE: usize = 100;
/// Newest messages in the resource of a session.
pub const RESOURCE_MESSAGES: usize = 50;

/// Resources that one client can subscribe to at once.
pub const SUBSCRIPTIONS_MAX: usize = 1000;
/// How long one poll for changes waits.
pub const CHANGES_WAIT: Duration = Duration::from_secs(20);
/// Events that one read of changes takes.
pub const CHANGES_PAGE: usize = 100;
/// The pause after a failed poll for changes.
pub const CHANGES_RETRY: Duration = Duration::from_secs(1);

/// How long clients may cache what seldom changes: the list of tools and the server's capabilities.
pub const STEADY_TTL: Duration = Duration::from_secs(60);
