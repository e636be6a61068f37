//! The most memory that this process has had, from a moment on.

use crate::Outcome;

/// Forgets the peak so far.
pub(crate) fn reset_peak() -> Outcome<()> {
    Ok(std::fs::write("/proc/self/clear_refs", "5")?)
}

/// The peak since then, in megabytes.
pub(crate) fn peak_megabytes() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    let kilobytes: f64 = kilobytes.ok_or("the system does not say VmHWM")?.parse()?;
    Ok(kilobytes / 1024.0)
}
