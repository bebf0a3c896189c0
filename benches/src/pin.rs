//! Which processor a process runs on.
//!
//! A client and a server that take turns, one request at a time, are measured on one processor:
//! on two of them each turn waits for the other one to wake up, which on a virtual machine takes
//! longer than all the work and varies.

use anyhow::Result;

/// Keeps this process on the machine's last processor. Elsewhere than on Linux it roams.
#[cfg(target_os = "linux")]
pub(crate) fn to_last_processor() -> Result<()> {
    use anyhow::Context as _;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let allowed = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|it| allowed.is_set(*it));
    let mut only = CpuSet::new();
    only.set(last.context("there is no processor to run on")?);
    sched_setaffinity(None, &only).context("this process cannot be kept on one processor")
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn to_last_processor() -> Result<()> {
    Ok(())
}
