//! What deadlines mean in virtual time.
//!
//! A context shows a moment of real time. Between two calls with one context (a retry,
//! say) somebody may have been held, and real time has gone on where virtual time has
//! not. So what a deadline means is settled when it is first used, and remembered.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ddbx_protocol::VirtualTime;

/// Beyond this, a deadline was not meant: it is the one that tarpc was given.
pub(crate) const FAR: Duration = Duration::from_secs(15 * 24 * 3_600);

/// tarpc's own, for calls without any other.
pub(crate) const DEADLINE_DEFAULT: Duration = Duration::from_secs(10);

/// How many are remembered. One that was forgotten counts as new.
const REMEMBERED_MAX: usize = 4 * 1024;

/// The deadlines that calls of a process were made with.
#[derive(Default)]
pub(crate) struct Deadlines(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    due: HashMap<Instant, VirtualTime>,
    order: VecDeque<Instant>,
}

impl Deadlines {
    /// What is left of a deadline, for a call made when a clock shows `clock`.
    pub(crate) fn remaining(&self, shown: Instant, clock: VirtualTime) -> Duration {
        let left = shown.saturating_duration_since(Instant::now());
        if left > FAR {
            return DEADLINE_DEFAULT;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Remembered { due, order } = &mut *known;
        let first_use = || {
            order.push_back(shown);
            clock + left
        };
        let due_at = *due.entry(shown).or_insert_with(first_use);
        if order.len() > REMEMBERED_MAX
            && let Some(oldest) = order.pop_front()
        {
            due.remove(&oldest);
        }
        due_at.since(clock)
    }
}

#[cfg(test)]
mod tests {
    use ddbx_protocol::{Delay, RealTime};

    use super::*;

    #[test]
    fn a_deadline_means_the_same_after_a_hold() {
        let deadlines = Deadlines::default();
        let shown = Instant::now() + Duration::from_secs(60);
        let start = RealTime::default() - Delay::ZERO;
        let first = deadlines.remaining(shown, start);
        assert!(first > Duration::from_secs(59) && first <= Duration::from_secs(60));
        // An hour of real time later, of which all but a second was held.
        let again = deadlines.remaining(shown, start + Duration::from_secs(1));
        assert_eq!(again, first - Duration::from_secs(1));
        let far = Instant::now() + 2 * FAR;
        assert_eq!(deadlines.remaining(far, start), DEADLINE_DEFAULT);
    }

    #[test]
    fn only_so_many_are_remembered() {
        let deadlines = Deadlines::default();
        let start = RealTime::default() - Delay::ZERO;
        let base = Instant::now() + Duration::from_secs(60);
        for n in 0..2 * REMEMBERED_MAX as u64 {
            deadlines.remaining(base + Duration::from_nanos(n), start);
        }
        let known = deadlines.0.lock().unwrap();
        assert_eq!((known.due.len(), known.order.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
    }
}
