//! The process group of a child: itself and what it started.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::time::{Instant, sleep};

use super::LOOK_AGAIN;

/// Everybody who was started by one child and has not left its group.
pub(super) struct Group {
    leader: Pid,
    asked: AtomicBool,
    gone: AtomicBool,
}

impl Group {
    pub(super) fn led_by(leader: Pid) -> Self {
        Self { leader, asked: AtomicBool::new(false), gone: AtomicBool::new(false) }
    }

    /// Asks everybody in it to end, once: many programs break off what they do
    /// for their end when they are asked again.
    pub(super) fn ask_to_end(&self) {
        if !self.asked.swap(true, Ordering::Relaxed) {
            self.signal(Signal::TERM);
        }
    }

    /// Ends everybody in it.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        // The number of a group that is gone may soon be that of another one.
        if !self.gone.load(Ordering::Relaxed) {
            // It fails when nobody is there any more, which is as good.
            let _ = kill_process_group(self.leader, signal);
        }
    }

    /// Ends what the child, which has exited, left behind; nothing as a rule.
    pub(super) async fn end(&self, grace: Duration) {
        let since = Instant::now();
        while self.is_alive() {
            self.ask_to_end();
            if since.elapsed() >= grace {
                self.kill();
                break;
            }
            sleep(LOOK_AGAIN).await;
        }
        self.gone.store(true, Ordering::Relaxed);
    }

    fn is_alive(&self) -> bool {
        test_kill_process_group(self.leader).is_ok() && !self.has_only_dead()
    }

    /// Dead orphans belong to their group until init has fetched their status,
    /// which it does late or, in some containers, never.
    fn has_only_dead(&self) -> bool {
        // Systems without it know no better than the signal did.
        let Ok(processes) = fs::read_dir("/proc/") else { return false };
        let mut members = processes
            .filter_map(|process| fs::read_to_string(process.ok()?.path().join("stat")).ok())
            .filter_map(|stat| state_in_group(&stat, self.leader))
            .peekable();
        members.peek().is_some() && members.all(|state| matches!(state, 'Z' | 'X'))
    }
}

/// The state of a process if it is in the group, from `pid (name) state parent group …`.
fn state_in_group(stat: &str, leader: Pid) -> Option<char> {
    // A name may have spaces and brackets in it; what follows has none.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    let group: i32 = fields.nth(1)?.parse().ok()?;
    (group == leader.as_raw_nonzero().get()).then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_whatever_their_name() {
        let leader = Pid::from_raw(42).unwrap();
        assert_eq!(state_in_group("43 (sh) S 1 42 42 0", leader), Some('S'));
        assert_eq!(state_in_group("43 (a) Z 1 7 (b) Z 1 42 42 0", leader), Some('Z'));
        assert_eq!(state_in_group("43 (sh) S 42 7 42 0", leader), None);
        assert_eq!(state_in_group("", leader), None);
    }
}
