//! What a process uses, as the system counts it.

use std::time::Duration;
use std::{fs, io};

use rustix::time::{ClockId, clock_gettime};

/// What the threads of a process have used that are still there.
pub fn cpu(pid: u32) -> io::Result<Duration> {
    let mut nanos = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let used = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        nanos += used.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos))
}

/// How much of its memory is there now, in bytes.
pub fn memory(pid: u32) -> io::Result<u64> {
    status(pid, "VmRSS:")
}

/// How much of that is its own, and not that of files: of those the system keeps more or less
/// as it likes.
pub fn own_memory(pid: u32) -> io::Result<u64> {
    status(pid, "RssAnon:")
}

fn status(pid: u32, what: &str) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix(what));
    let kib = resident.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| io::Error::other(format!("no {what} in its status")))
}

/// What this process has used, by all of its threads.
pub fn own_cpu() -> Duration {
    used(ClockId::ProcessCPUTime)
}

/// What this thread has used.
pub fn thread_cpu() -> Duration {
    used(ClockId::ThreadCPUTime)
}

fn used(clock: ClockId) -> Duration {
    let used = clock_gettime(clock);
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec as u32)
}
