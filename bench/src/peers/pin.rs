//! All of it on one core: a wake-up across cores costs more than a call.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// This thread, and all that it starts from now on, stay on the last core that there is.
pub fn to_one_core() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|core| allowed.is_set(*core));
    let mut one = CpuSet::new();
    one.set(last.ok_or(io::ErrorKind::NotFound)?);
    Ok(sched_setaffinity(None, &one)?)
}
