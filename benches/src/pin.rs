//! Processor affinity.
//!
//! A client and a server that alternate, one request at a time, are measured on one processor. On
//! two processors, each request waits for the other processor to wake up. On a virtual machine,
//! that takes longer than the actual work and varies.

use anyhow::Result;

/// Pins this process to the last processor of the machine. Does nothing except on Linux.
#[cfg(target_os = "linux")]
pub(crate) fn to_last_processor() -> Result<()> {
    use anyhow::Context as _;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let allowed = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|processor| allowed.is_set(*processor));
    let mut only = CpuSet::new();
    only.set(last.context("there is no processor to run on")?);
    sched_setaffinity(None, &only).context("this process cannot be pinned to one processor")
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn to_last_processor() -> Result<()> {
    Ok(())
}
