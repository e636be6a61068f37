use std::sync::OnceLock;

/// Identifies one process of one boot of one machine; written into lock files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFacts {
    /// Process id.
    pub pid: u32,
    /// Identifies this boot of the machine; empty if the system does not report it.
    pub boot_id: String,
}

/// The facts of this process.
#[must_use]
pub fn host_facts() -> HostFacts {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    HostFacts { pid: std::process::id(), boot_id: BOOT_ID.get_or_init(read_boot_id).clone() }
}

#[expect(clippy::disallowed_methods, reason = "only this crate may")]
fn read_boot_id() -> String {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot_id.trim().to_owned()
}
