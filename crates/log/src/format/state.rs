use std::fmt;

use serde::{Deserialize, Serialize};

/// The nine states of a store, as the contract names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StoreState {
    /// Made, nothing in it.
    Clean,
    /// Has frames that only a scan of the tail would find.
    Dirty,
    /// The open segment is synced and closed to writing.
    SegmentSealed,
    /// Offset rows are synced up to the head.
    Indexed,
    /// Checkpoint and manifest are in place.
    Checkpointed,
    /// Being built from another format.
    MigrationStaging,
    /// Live after a migration.
    Migrated,
    /// The former format is live again.
    RolledBack,
    /// In doubt: not served for writing until it is repaired or rolled back.
    Failed,
}

impl StoreState {
    /// All of them, in the contract's order.
    pub const ALL: [Self; 9] = [
        Self::Clean,
        Self::Dirty,
        Self::SegmentSealed,
        Self::Indexed,
        Self::Checkpointed,
        Self::MigrationStaging,
        Self::Migrated,
        Self::RolledBack,
        Self::Failed,
    ];

    /// Where a store may go from here; anything else is refused.
    #[must_use]
    pub fn successors(self) -> &'static [Self] {
        match self {
            Self::Clean => &[Self::Dirty, Self::MigrationStaging],
            Self::Dirty => &[Self::SegmentSealed, Self::Failed],
            Self::SegmentSealed => &[Self::Indexed, Self::Failed],
            Self::Indexed => &[Self::Checkpointed, Self::Dirty, Self::Failed],
            Self::Checkpointed => {
                &[Self::Dirty, Self::MigrationStaging, Self::RolledBack, Self::Failed]
            }
            Self::MigrationStaging => &[Self::Migrated, Self::RolledBack, Self::Failed],
            Self::Migrated | Self::RolledBack => &[Self::Dirty, Self::Failed],
            Self::Failed => &[Self::Dirty, Self::RolledBack],
        }
    }

    /// The next state, if the contract allows it.
    pub fn go(self, to: Self) -> crate::Result<Self> {
        if self.successors().contains(&to) {
            Ok(to)
        } else {
            Err(crate::LogError::Transition { from: self, to })
        }
    }
}

impl fmt::Display for StoreState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "CLEAN",
            Self::Dirty => "DIRTY",
            Self::SegmentSealed => "SEGMENT_SEALED",
            Self::Indexed => "INDEXED",
            Self::Checkpointed => "CHECKPOINTED",
            Self::MigrationStaging => "MIGRATION_STAGING",
            Self::Migrated => "MIGRATED",
            Self::RolledBack => "ROLLED_BACK",
            Self::Failed => "FAILED",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::StoreState::{self, *};

    /// The contract's list, written out a second time, so that a change to either is seen.
    const ALLOWED: [(StoreState, StoreState); 21] = [
        (Clean, Dirty),
        (Clean, MigrationStaging),
        (Dirty, SegmentSealed),
        (Dirty, Failed),
        (SegmentSealed, Indexed),
        (SegmentSealed, Failed),
        (Indexed, Checkpointed),
        (Indexed, Dirty),
        (Indexed, Failed),
        (Checkpointed, Dirty),
        (Checkpointed, MigrationStaging),
        (Checkpointed, RolledBack),
        (Checkpointed, Failed),
        (MigrationStaging, Migrated),
        (MigrationStaging, RolledBack),
        (MigrationStaging, Failed),
        (Migrated, Dirty),
        (Migrated, Failed),
        (RolledBack, Dirty),
        (RolledBack, Failed),
        (Failed, Dirty),
    ];

    #[test]
    fn all_81_pairs_are_allowed_or_refused_as_the_contract_says() {
        let mut pairs = 0;
        for from in StoreState::ALL {
            for to in StoreState::ALL {
                pairs += 1;
                let allowed = ALLOWED.contains(&(from, to)) || (from, to) == (Failed, RolledBack);
                assert_eq!(from.go(to).is_ok(), allowed, "{from} -> {to}");
            }
        }
        assert_eq!(pairs, 81);
    }

    #[test]
    fn names_on_the_wire_are_the_contracts() {
        for state in StoreState::ALL {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{state}\""));
        }
    }
}
