use std::collections::BTreeMap;
use std::io;

/// The calls of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are those of the trait's methods")]
pub enum Call {
    Create,
    Open,
    CreateDir,
    Rename,
    RemoveFile,
    RemoveDir,
    List,
    Stat,
    SyncDir,
    Lock,
    LockHolder,
    Len,
    Read,
    Write,
    SetLen,
    Sync,
    OtherWriters,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// No space left; nothing was done.
    Full,
    /// The device does not answer; nothing was done. A sync leaves its pages dirty.
    Broken,
    /// Interrupted; nothing was done.
    Interrupted,
    /// Half of the bytes were written, then the space ended. Only writes.
    ShortWrite,
    /// The sync fails and its pages are marked clean. Only file syncs.
    LostPages,
}

impl Fault {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::Full, Self::Broken, Self::Interrupted, Self::ShortWrite, Self::LostPages];

    /// Whether this can happen to a call.
    #[must_use]
    pub const fn can_hit(self, call: Call) -> bool {
        match self {
            Self::ShortWrite => matches!(call, Call::Write),
            Self::LostPages => matches!(call, Call::Sync),
            Self::Full | Self::Broken | Self::Interrupted => true,
        }
    }

    /// The error that the caller sees.
    #[must_use]
    pub fn error(self) -> io::Error {
        let code = match self {
            Self::Full | Self::ShortWrite => 28,
            Self::Broken | Self::LostPages => 5,
            Self::Interrupted => 4,
        };
        io::Error::from_raw_os_error(code)
    }
}

/// Which call fails, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// Only calls of this kind are counted; `None` counts all that the fault can hit.
    pub call: Option<Call>,
    /// Which of the counted calls fails first, from 1.
    pub at: u64,
    /// What goes wrong.
    pub fault: Fault,
    /// Whether every counted call from then on fails too, until the disk is healed.
    pub lasting: bool,
}

impl FaultPlan {
    /// The `at`-th call that the fault can hit fails, once.
    #[must_use]
    pub const fn once(fault: Fault, at: u64) -> Self {
        Self { call: None, at, fault, lasting: false }
    }

    /// Every call that the fault can hit fails from the `at`-th on.
    #[must_use]
    pub const fn from(fault: Fault, at: u64) -> Self {
        Self { lasting: true, ..Self::once(fault, at) }
    }

    /// The same plan, counting only one kind of call.
    #[must_use]
    pub const fn only(self, call: Call) -> Self {
        Self { call: Some(call), ..self }
    }

    fn counts(&self, call: Call) -> bool {
        self.fault.can_hit(call) && self.call.is_none_or(|only| only == call)
    }
}

/// A fault that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    /// What was called.
    pub call: Call,
    /// On what.
    pub path: String,
    /// What went wrong.
    pub fault: Fault,
}

/// How often each call was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    counts: BTreeMap<Call, u64>,
}

impl CallCounts {
    /// How often one call was made.
    #[must_use]
    pub fn of(&self, call: Call) -> u64 {
        self.counts.get(&call).copied().unwrap_or(0)
    }

    /// How many calls there were that a fault can hit.
    #[must_use]
    pub fn that_can_be_hit_by(&self, fault: Fault) -> u64 {
        let hit = self.counts.iter().filter(|(call, _)| fault.can_hit(**call));
        hit.map(|(_, count)| count).sum()
    }

    /// All calls.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// Counts calls and decides which of them fail.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) counts: CallCounts,
    pub(crate) fired: Vec<Fired>,
    plan: Option<(FaultPlan, u64)>,
}

impl Faults {
    pub(crate) fn inject(&mut self, plan: FaultPlan) {
        self.plan = Some((plan, 0));
    }

    pub(crate) fn heal(&mut self) {
        self.plan = None;
    }

    /// Counts a call, and returns its fault, if any.
    pub(crate) fn on(&mut self, call: Call, path: &str) -> Option<Fault> {
        *self.counts.counts.entry(call).or_insert(0) += 1;
        let (plan, seen) = self.plan.as_mut().filter(|(plan, _)| plan.counts(call))?;
        *seen += 1;
        let hit = *seen == plan.at || (plan.lasting && *seen > plan.at);
        if !hit {
            return None;
        }
        let fault = plan.fault;
        let path = path.to_owned();
        self.fired.push(Fired { call, path, fault });
        Some(fault)
    }
}
