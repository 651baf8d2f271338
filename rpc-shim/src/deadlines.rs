//! What deadlines mean in virtual time.
//!
//! A context shows a moment of real time. Between two calls with one context (a retry,
//! say) somebody may have been held, and real time has gone on where virtual time has
//! not. So what a deadline means is settled when it is first used, and remembered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ddbx_protocol::Delay;

/// Beyond this, a deadline was not meant: it is the one that tarpc was given.
pub(crate) const FAR: Duration = Duration::from_secs(15 * 24 * 3_600);

/// tarpc's own, for calls without any other.
pub(crate) const DEADLINE_DEFAULT: Duration = Duration::from_secs(10);

/// How many are remembered. One whose place another has taken counts as new.
const REMEMBERED_MAX: usize = 2 * 1024;

/// The deadlines that calls of a process were made with.
pub(crate) struct Deadlines {
    origin: Instant,
    uses: Box<[FirstUse]>,
}

/// With which delay a deadline was first used. Neither is written together with the
/// other: of two calls that write at the same moment one may get the delay of the other,
/// which is the same unless a hold ends in that moment.
#[derive(Default)]
struct FirstUse {
    /// 0 for none.
    deadline: AtomicU64,
    delay: AtomicU64,
}

impl Default for Deadlines {
    fn default() -> Self {
        let uses = (0..REMEMBERED_MAX).map(|_| FirstUse::default()).collect();
        Self { origin: Instant::now(), uses }
    }
}

impl Deadlines {
    /// What is left of a deadline, for a call with this delay.
    pub(crate) fn remaining(&self, shown: Instant, now: Instant, delay: Delay) -> Duration {
        let left = shown.saturating_duration_since(now);
        if left > FAR {
            return DEADLINE_DEFAULT;
        }
        let first = self.first_use(shown, delay);
        // What has been held since then was not taken from it.
        let held = delay.beyond(first);
        match shown.checked_add(held) {
            Some(due) => due.saturating_duration_since(now),
            None => left,
        }
    }

    fn first_use(&self, shown: Instant, delay: Delay) -> Delay {
        let since = shown.saturating_duration_since(self.origin).as_nanos();
        let deadline = u64::try_from(since).unwrap_or(u64::MAX).max(1);
        let place = deadline.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let first = &self.uses[place as usize % REMEMBERED_MAX];
        if first.deadline.load(Ordering::Acquire) == deadline {
            let known = first.delay.load(Ordering::Acquire);
            if first.deadline.load(Ordering::Acquire) == deadline {
                return Delay::from_nanos(known);
            }
        }
        first.deadline.store(0, Ordering::Release);
        first.delay.store(delay.as_nanos(), Ordering::Release);
        first.deadline.store(deadline, Ordering::Release);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_deadline_means_the_same_after_a_hold() {
        let deadlines = Deadlines::default();
        let now = Instant::now();
        let shown = now + 60 * SECOND;
        assert_eq!(deadlines.remaining(shown, now, Delay::ZERO), 60 * SECOND);
        // An hour of real time later, of which all but a second was held.
        let (later, held) = (now + 3_600 * SECOND, Delay::from(3_599 * SECOND));
        assert_eq!(deadlines.remaining(shown, later, held), 59 * SECOND);
        let far = now + 2 * FAR;
        assert_eq!(deadlines.remaining(far, now, Delay::ZERO), DEADLINE_DEFAULT);
        assert_eq!(deadlines.remaining(now, later, Delay::ZERO), Duration::ZERO);
    }

    #[test]
    fn one_that_was_forgotten_counts_as_new() {
        let deadlines = Deadlines::default();
        let now = Instant::now();
        let shown = |n| now + SECOND + Duration::from_nanos(n);
        for n in 0..4 * REMEMBERED_MAX as u64 {
            deadlines.remaining(shown(n), now, Delay::ZERO);
        }
        let held = Delay::from(10 * SECOND);
        // The last ones are known; whoever is not takes the place of another.
        let known = (0..4 * REMEMBERED_MAX as u64)
            .rev()
            .filter(|n| deadlines.remaining(shown(*n), now, held) > 2 * SECOND)
            .count();
        assert!((REMEMBERED_MAX / 2..=REMEMBERED_MAX).contains(&known), "{known}");
    }
}
