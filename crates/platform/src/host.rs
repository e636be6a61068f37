/// What tells one process of one boot of one machine from another; written into lock files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFacts {
    /// Process id.
    pub pid: u32,
    /// Identifies this boot of the machine; empty where the system does not say.
    pub boot_id: String,
}

/// The facts of this process.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn host_facts() -> HostFacts {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    HostFacts {
        pid: std::process::id(),
        boot_id: boot_id.trim().to_owned(),
    }
}
