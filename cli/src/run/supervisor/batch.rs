//! Programs for which it does not matter which of their threads runs when.
//!
//! In a replay the order of all events is given. Where a thread that is woken takes the processor
//! from another one, only for its event to find that it is not its turn, both have lost time. The
//! kernel has a policy for work that nobody waits for, under which it lets the other one go on.
//!
//! A child has the policy of the thread that starts it, and so do its threads: that must be so
//! before the first of them is there. Therefore this thread changes its own while it starts one.

#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "calls of the system that no crate offers which is here anyway")
)]

/// Starts a child as such a program, if it would have the usual policy otherwise. If the system
/// refuses it has that: it is only slower then.
#[cfg(target_os = "linux")]
pub(super) fn as_batch<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: the call takes a number, where 0 is this thread, and gives one back.
    let is_usual = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_OTHER;
    let is_changed = is_usual && has_policy(libc::SCHED_BATCH);
    let started = start();
    if is_changed {
        has_policy(libc::SCHED_OTHER);
    }
    started
}

/// Elsewhere there is no such policy.
#[cfg(not(target_os = "linux"))]
pub(super) fn as_batch<T>(start: impl FnOnce() -> T) -> T {
    start()
}

/// Whether this thread has that policy from now on.
#[cfg(target_os = "linux")]
fn has_policy(policy: libc::c_int) -> bool {
    // SAFETY: it consists of numbers, which are to be 0 for these policies; how many there are
    // depends on the C library.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: the parameters are only read, and only during the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::Command;

    use super::as_batch;

    /// As the kernel tells it of a process.
    fn policy_of(stat: &str) -> i32 {
        let behind_the_name = stat.rsplit_once(')').unwrap().1;
        behind_the_name.split_whitespace().nth(38).unwrap().parse().unwrap()
    }

    fn policy_of_a_child() -> i32 {
        let output = Command::new("cat").arg("/proc/self/stat").output().unwrap();
        policy_of(&String::from_utf8(output.stdout).unwrap())
    }

    #[test]
    fn a_child_has_the_policy_and_its_parent_does_not_keep_it() {
        let own = || policy_of(&std::fs::read_to_string("/proc/thread-self/stat").unwrap());
        let before = own();
        if before != libc::SCHED_OTHER {
            // These tests are batch work themselves, or more than that.
            return assert_eq!(as_batch(policy_of_a_child), before);
        }
        assert_eq!(as_batch(policy_of_a_child), libc::SCHED_BATCH);
        assert_eq!((own(), policy_of_a_child()), (before, before));
    }
}
