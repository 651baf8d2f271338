//! All of it on one core: a wake-up across cores costs more than a call.

use std::{io, thread};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// This thread, and all that it starts from now on, stay on the last core that there is.
pub fn to_one_core() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|core| allowed.is_set(*core));
    let mut one = CpuSet::new();
    one.set(last.ok_or(io::ErrorKind::NotFound)?);
    Ok(sched_setaffinity(None, &one)?)
}

/// Does something on that core, whatever it starts included; this thread stays where it is.
pub fn on_one_core<T: Send>(what: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let pinned = || {
        to_one_core()?;
        what()
    };
    thread::scope(|scope| scope.spawn(pinned).join())
        .unwrap_or_else(|_| Err(io::Error::other("the thread on one core has failed")))
}
