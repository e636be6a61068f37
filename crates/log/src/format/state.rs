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

    /// The states that a checkpoint passes through.
    pub const ROUND: [Self; 4] =
        [Self::Dirty, Self::SegmentSealed, Self::Indexed, Self::Checkpointed];

    /// The last of several states, if the contract allows every step to it.
    pub fn go_through(self, states: &[Self]) -> crate::Result<Self> {
        states.iter().try_fold(self, |state, next| state.go(*next))
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

    /// Whether a store can come from one state to another without passing through a third.
    fn reaches(from: StoreState, to: StoreState, without: Option<StoreState>) -> bool {
        let mut seen = vec![from];
        let mut next = 0;
        while let Some(state) = seen.get(next).copied() {
            next += 1;
            for successor in state.successors() {
                if Some(*successor) != without && !seen.contains(successor) {
                    seen.push(*successor);
                }
            }
        }
        seen.contains(&to)
    }

    fn predecessors(of: StoreState) -> Vec<StoreState> {
        StoreState::ALL.into_iter().filter(|from| from.go(of).is_ok()).collect()
    }

    /// The list itself is the contract document's, which `tests/contract.rs` compares; here is what it is for.
    #[test]
    fn a_checkpoint_comes_after_a_sealed_segment_and_its_index_from_everywhere() {
        for from in [Clean, Dirty, MigrationStaging, Migrated, RolledBack, Failed] {
            assert!(reaches(from, Checkpointed, None), "{from} is a dead end");
            for step in [SegmentSealed, Indexed] {
                assert!(!reaches(from, Checkpointed, Some(step)), "{from} passes {step} over");
            }
        }
        assert!(!reaches(SegmentSealed, Checkpointed, Some(Indexed)));
    }

    #[test]
    fn a_migration_is_staged_before_it_is_live_and_can_always_be_undone() {
        assert_eq!(predecessors(Migrated), [MigrationStaging]);
        assert_eq!(predecessors(MigrationStaging), [Clean, Checkpointed]);
        assert!(StoreState::ALL.into_iter().all(|from| reaches(from, RolledBack, None)));
    }

    #[test]
    fn a_store_is_new_once_and_a_failed_one_does_not_serve_before_it_is_repaired() {
        assert_eq!(predecessors(Clean), []);
        for to in [Clean, SegmentSealed, Indexed, Checkpointed, MigrationStaging, Migrated] {
            assert!(Failed.go(to).is_err(), "{to}");
        }
        let fails = |from: &StoreState| from.go(Failed).is_ok();
        assert_eq!(
            StoreState::ALL.into_iter().filter(|from| !fails(from)).collect::<Vec<_>>(),
            [Clean, Failed]
        );
    }

    #[test]
    fn names_on_the_wire_are_the_contracts() {
        for state in StoreState::ALL {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{state}\""));
        }
    }
}
