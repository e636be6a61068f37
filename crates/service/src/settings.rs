//! Settings that may change while the service runs.

use std::sync::Arc;
use std::time::Duration;

use bough_session::limits::{PAGE_DEFAULT, PAGE_MAX, clamp_page};

use crate::compaction::CompactionSettings;
use crate::limits::{IDEMPOTENCY_KEYS, STREAM_ABANDONED_AFTER};

/// What may be set; read anew by each call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Page size when the caller does not say.
    pub default_list_limit: usize,
    /// Largest page. Nonsense (0) is read as 1.
    pub max_list_limit: usize,
    /// How long deleted sessions are kept; `None` is until they are purged by hand.
    pub trash_retention: Option<Duration>,
    /// How long an idempotency key means the call that it was first used for; `None` is for ever.
    pub idempotency_keys: Option<Duration>,
    /// How long a message that streams may stand still before it is closed as aborted; `None` is for ever.
    pub stream_abandoned_after: Option<Duration>,
    /// When conversations are compacted, and how much of them is kept.
    pub compaction: Arc<CompactionSettings>,
}

impl Default for Settings {
    fn default() -> Self {
        /// How long deleted sessions are kept by default.
        const TRASH_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
        Self {
            default_list_limit: PAGE_DEFAULT,
            max_list_limit: PAGE_MAX,
            trash_retention: Some(TRASH_RETENTION),
            idempotency_keys: Some(IDEMPOTENCY_KEYS),
            stream_abandoned_after: Some(STREAM_ABANDONED_AFTER),
            compaction: Arc::default(),
        }
    }
}

impl Settings {
    /// A page size as asked for, brought into what is allowed.
    #[must_use]
    pub fn page(&self, asked: Option<usize>) -> usize {
        clamp_page(asked, self.default_list_limit, self.max_list_limit)
    }

    /// When a session that was deleted at `deleted_at` may be purged.
    #[must_use]
    pub fn expires_at(&self, deleted_at: i64) -> Option<i64> {
        let retention = i64::try_from(self.trash_retention?.as_millis()).unwrap_or(i64::MAX);
        Some(deleted_at.saturating_add(retention))
    }
}
