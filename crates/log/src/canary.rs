//! Deliberately removed safety steps, for showing that the harness would notice. Compiled in only with
//! the `canaries` feature, which nothing but the harness enables; otherwise every question is a constant
//! `false` and costs nothing.

/// Acknowledge before the sync.
pub const NO_SYNC: &str = "no-sync";
/// Write the offset row before the frame is durable.
pub const ROW_BEFORE_SYNC: &str = "row-before-sync";
/// Believe a frame without its checksum.
pub const NO_CHECKSUM: &str = "no-checksum";
/// Believe a frame that does not continue the chain.
pub const NO_CHAIN: &str = "no-chain";
/// Take damage of what was acknowledged for a torn tail.
pub const ROT_IS_TORN: &str = "rot-is-torn";
/// Take a torn tail for damage.
pub const TORN_IS_ROT: &str = "torn-is-rot";
/// Go on writing the segment of an earlier incarnation after an unclean end.
pub const APPEND_TO_OLD_SEGMENT: &str = "append-to-old-segment";
/// Do not take the lock.
pub const NO_LOCK: &str = "no-lock";
/// Let a container of another incarnation answer.
pub const INCARNATION_IGNORED: &str = "incarnation-ignored";
/// Try a failed sync again and believe the second answer.
pub const NO_LATCH: &str = "no-latch";
/// Show batches that are not whole.
pub const PARTIAL_BATCHES: &str = "partial-batches";
/// Believe what an unclean end left in the page cache without writing it again.
pub const TRUST_PAGE_CACHE: &str = "trust-page-cache";
/// Move a checkpoint into place before it is synced.
pub const CHECKPOINT_UNSYNCED: &str = "checkpoint-unsynced";
/// Give up when a row or a page of the index cannot be read, instead of making it again from the segments.
pub const INDEX_NOT_REBUILT: &str = "index-not-rebuilt";
/// In the weaker durability, let a frame vouch for frames that were not synced before it.
pub const UNSYNCED_VOUCHES: &str = "unsynced-vouches";
/// In the weaker durability, let deltas go before the revision that settles them is durable.
pub const DELTAS_GO_EARLY: &str = "deltas-go-early";

/// All of them.
pub const ALL: [&str; 16] = [
    NO_SYNC,
    ROW_BEFORE_SYNC,
    NO_CHECKSUM,
    NO_CHAIN,
    ROT_IS_TORN,
    TORN_IS_ROT,
    APPEND_TO_OLD_SEGMENT,
    NO_LOCK,
    INCARNATION_IGNORED,
    NO_LATCH,
    PARTIAL_BATCHES,
    TRUST_PAGE_CACHE,
    CHECKPOINT_UNSYNCED,
    INDEX_NOT_REBUILT,
    UNSYNCED_VOUCHES,
    DELTAS_GO_EARLY,
];

#[cfg(feature = "canaries")]
mod switch {
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Place in [`super::ALL`], from 1; 0 when every step is in place.
    static REMOVED: AtomicUsize = AtomicUsize::new(0);

    /// Removes one safety step in this process; `None` puts it back.
    pub fn remove(step: Option<&'static str>) {
        let place = step.and_then(|step| super::ALL.iter().position(|known| *known == step));
        REMOVED.store(place.map_or(0, |place| place + 1), Ordering::SeqCst);
    }

    pub(crate) fn on(step: &'static str) -> bool {
        let removed = REMOVED.load(Ordering::SeqCst);
        removed > 0 && super::ALL.get(removed - 1) == Some(&step)
    }
}

#[cfg(feature = "canaries")]
pub(crate) use switch::on;
#[cfg(feature = "canaries")]
pub use switch::remove;

/// Whether a safety step is removed: never.
#[cfg(not(feature = "canaries"))]
pub(crate) const fn on(_: &'static str) -> bool {
    false
}
