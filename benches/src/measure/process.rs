//! The resource usage of this process.

use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::time::{ClockId, clock_gettime};

/// Returns the processor time of all threads so far, in user and kernel mode.
pub(super) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the peak memory of the process, or 0 if the system does not report it.
pub(super) fn peak_bytes() -> Result<u64> {
    memory("VmHWM:")
}

/// Returns the memory of the process, or 0 if the system does not report it.
pub(super) fn bytes() -> Result<u64> {
    memory("VmRSS:")
}

fn memory(which: &str) -> Result<u64> {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return Ok(0) };
    let line = status.lines().find_map(|line| line.strip_prefix(which));
    let line = line.context("the system does not report the memory of the process")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim_end().parse()?;
    Ok(kilobytes * 1024)
}
