//! What deadlines mean in virtual time.
//!
//! A context shows a moment of real time. Between two calls with one context (a retry,
//! say) somebody may have been held, and real time has gone on where virtual time has
//! not. So what a deadline means is settled when it is first used, and remembered.

use std::ops::Add;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ddbx_protocol::{Delay, RealTime, VirtualTime};
use ddbx_satellite::driver::Handle;
use serde::{Deserialize, Serialize};

/// tarpc itself is given a deadline that never comes: the shim keeps the real one,
/// in virtual time. (tokio's timers do not take much more than two years.)
const FAR_AWAY: Duration = Duration::from_secs(30 * DAY_SECONDS);

/// Beyond this, a deadline was not meant: it is the one that tarpc was given.
pub(crate) const FAR: Remaining = Remaining::seconds(15 * DAY_SECONDS);

/// tarpc's own, for calls without any other.
pub(crate) const DEADLINE_DEFAULT: Remaining = Remaining::seconds(10);

const DAY_SECONDS: u64 = 24 * 3_600;

/// What is left of a deadline, in nanoseconds of virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Remaining(pub(crate) u64);

impl Remaining {
    const fn seconds(seconds: u64) -> Self {
        Self(seconds * 1_000_000_000)
    }

    /// Until a clock that shows one shows the other.
    #[inline]
    pub(crate) const fn from_until(now: RealTime, due: RealTime) -> Self {
        Self(difference(now.as_nanos(), due.as_nanos()))
    }

    /// The same in virtual time.
    #[inline]
    pub(crate) const fn of_control(now: VirtualTime, due: VirtualTime) -> Self {
        Self(difference(now.as_nanos(), due.as_nanos()))
    }

    /// As a length of time.
    #[inline]
    pub(crate) const fn length(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// So far away from when a call is made is the deadline that tarpc is given for it, if so
    /// much is left of its own, whatever somebody may have said.
    #[inline]
    pub(crate) fn far_away(self) -> Duration {
        Duration::from_nanos(self.far_away_nanos())
    }

    #[inline]
    fn far_away_nanos(self) -> u64 {
        FAR_AWAY.as_nanos() as u64 + self.min(FAR).0
    }
}

/// Zero if that is over. The true difference of two i64 fits in a u64.
const fn difference(now: i64, due: i64) -> u64 {
    if due > now { due.wrapping_sub(now) as u64 } else { 0 }
}

impl Add<Remaining> for RealTime {
    type Output = Self;
    #[inline]
    fn add(self, Remaining(nanos): Remaining) -> Self {
        Self::from_nanos(self.as_nanos().saturating_add_unsigned(nanos))
    }
}

impl Add<Remaining> for VirtualTime {
    type Output = Self;
    #[inline]
    fn add(self, Remaining(nanos): Remaining) -> Self {
        Self::from_nanos(self.as_nanos().saturating_add_unsigned(nanos))
    }
}

/// What a context says of when its request came is believed if that is so near to what was
/// known last: somebody between tarpc and here may have given it another deadline.
const BELIEVED: Duration = Duration::from_secs(24 * 3_600);

/// How many are remembered. One whose place another has taken counts as new.
const REMEMBERED_MAX: usize = 2 * 1024;

/// A moment, as the system shows it and as the clock of a process does: the clock is asked
/// once.
#[derive(Clone, Copy)]
pub(crate) struct Now {
    pub(crate) at: Instant,
    pub(crate) clock: RealTime,
}

impl Now {
    #[inline]
    pub(crate) fn of(satellite: &Handle) -> Self {
        let at = Instant::now();
        Self { at, clock: satellite.at(at) }
    }

    /// Of a call with so much left of its deadline.
    #[inline]
    pub(crate) fn with(self, remaining: Remaining) -> Came {
        Came { clock: self.clock, shown: self.at.checked_add(remaining.length()) }
    }

    /// What the clock shows at another moment, which may be over.
    #[inline]
    pub(crate) fn clock_at(self, moment: Instant) -> RealTime {
        match moment.checked_duration_since(self.at) {
            Some(later) => self.clock + later,
            None => self.clock - (self.at - moment),
        }
    }
}

/// When a call came, and the deadline that its handler is to be shown if it need not wait.
#[derive(Clone, Copy)]
pub(crate) struct Came {
    pub(crate) clock: RealTime,
    pub(crate) shown: Option<Instant>,
}

/// The deadlines that calls of a process were made with.
pub(crate) struct Deadlines {
    /// When a deadline was first used its place says so, until another takes it; 0 for none.
    used: Box<[AtomicU64]>,
    /// With which delay that was. Neither is written together with the other: of two calls that
    /// write at the same moment one may get the delay of the other, which is the same unless a
    /// hold ends in that moment.
    delays: Box<[AtomicU64]>,
    /// Whether any of these is not 0. As long as nobody was held there is nothing to look up,
    /// and little to write down.
    has_delays: AtomicBool,
    /// When the clock was last asked for a call that came.
    asked: AtomicI64,
}

impl Default for Deadlines {
    fn default() -> Self {
        let zeros = || (0..REMEMBERED_MAX).map(|_| AtomicU64::new(0)).collect();
        let (has_delays, asked) = (AtomicBool::new(false), AtomicI64::new(0));
        Self { used: zeros(), delays: zeros(), has_delays, asked }
    }
}

impl Deadlines {
    /// Of a request that has come just now, with so much left of its deadline. tarpc was given
    /// one for it that is far away from that, and shows it here: the clock need not be asked.
    #[inline]
    pub(crate) fn came(&self, satellite: &Handle, given: Instant, remaining: Remaining) -> Came {
        let given_at = satellite.at(given).as_nanos();
        let clock = given_at.saturating_sub_unsigned(remaining.far_away_nanos());
        let clock = RealTime::from_nanos(clock);
        match given.checked_sub(FAR_AWAY) {
            Some(shown) if self.is_believed(clock) => Came { clock, shown: Some(shown) },
            _ => self.ask(satellite, remaining),
        }
    }

    #[inline]
    fn is_believed(&self, clock: RealTime) -> bool {
        let asked = self.asked.load(Ordering::Relaxed);
        clock.as_nanos().abs_diff(asked) < BELIEVED.as_nanos() as u64
    }

    #[cold]
    fn ask(&self, satellite: &Handle, remaining: Remaining) -> Came {
        let now = Now::of(satellite);
        self.asked.store(now.clock.as_nanos(), Ordering::Relaxed);
        now.with(remaining)
    }

    /// What is left of a deadline, for a call with this delay.
    #[inline]
    pub(crate) fn remaining(&self, shown: RealTime, now: RealTime, delay: Delay) -> Remaining {
        if Remaining::from_until(now, shown) > FAR {
            return DEADLINE_DEFAULT;
        }
        // What has been held since it was first used was not taken from it.
        let held = delay.as_nanos().saturating_sub(self.first_use(shown, delay).as_nanos());
        Remaining::from_until(now, shown + Remaining(held))
    }

    #[inline]
    fn first_use(&self, shown: RealTime, delay: Delay) -> Delay {
        let deadline = shown.as_nanos().max(1).unsigned_abs();
        // One after the other: so their places are near each other.
        let place = (deadline >> 10) as usize % REMEMBERED_MAX;
        if delay == Delay::ZERO && !self.has_delays.load(Ordering::Relaxed) {
            self.used[place].store(deadline, Ordering::Release);
            return delay;
        }
        self.look_up(place, deadline, delay)
    }

    fn look_up(&self, place: usize, deadline: u64, delay: Delay) -> Delay {
        // All threads read it: so it is written once.
        if !self.has_delays.load(Ordering::Relaxed) {
            self.has_delays.store(true, Ordering::Relaxed);
        }
        let (used, first) = (&self.used[place], &self.delays[place]);
        if used.load(Ordering::Acquire) == deadline {
            let known = first.load(Ordering::Acquire);
            if used.load(Ordering::Acquire) == deadline {
                return Delay::from_nanos(known);
            }
        }
        used.store(0, Ordering::Release);
        first.store(delay.as_nanos(), Ordering::Release);
        used.store(deadline, Ordering::Release);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u32) -> RealTime {
        RealTime::default() + seconds * SECOND
    }

    #[test]
    fn a_deadline_means_the_same_after_a_hold() {
        let deadlines = Deadlines::default();
        assert_eq!(deadlines.remaining(at(61), at(1), Delay::ZERO), Remaining::seconds(60));
        // An hour of real time later, of which all but a second was held.
        let held = Delay::from(3_599 * SECOND);
        assert_eq!(deadlines.remaining(at(61), at(3_601), held), Remaining::seconds(59));
        let far = at(1) + FAR + FAR;
        assert_eq!(deadlines.remaining(far, at(1), Delay::ZERO), DEADLINE_DEFAULT);
        assert_eq!(deadlines.remaining(at(1), at(3_601), Delay::ZERO), Remaining(0));
    }

    #[test]
    fn a_moment_that_is_over_has_its_time_too() {
        let now = Now { at: Instant::now(), clock: at(100) };
        assert_eq!(now.clock_at(now.at + SECOND), at(101));
        assert_eq!(now.clock_at(now.at - SECOND), at(99));
    }

    #[test]
    fn what_a_context_says_of_its_request_is_believed_if_it_can_be() {
        let deadlines = Deadlines::default();
        let day = 24 * 3_600;
        assert!(deadlines.is_believed(at(1)) && deadlines.is_believed(at(day - 1)));
        assert!(!deadlines.is_believed(at(day)));
        // Somebody has brought its deadline near.
        let near = |now: RealTime, left: Remaining| now + left - left.far_away();
        assert!(
            !deadlines.is_believed(near(at(1), FAR))
                && !deadlines.is_believed(near(at(1), Remaining::seconds(1)))
        );
        deadlines.asked.store(at(40 * day).as_nanos(), Ordering::Relaxed);
        assert!(deadlines.is_believed(at(40 * day + 5)) && !deadlines.is_believed(at(1)));
        assert!(!deadlines.is_believed(near(at(40 * day), FAR)));
        assert_eq!(
            Remaining(u64::MAX).far_away(),
            FAR.far_away(),
            "tokio's timers do not take more"
        );
    }

    #[test]
    fn one_that_was_forgotten_counts_as_new() {
        let deadlines = Deadlines::default();
        let shown = |n| at(1) + Duration::from_micros(3 * n);
        for n in 0..4 * REMEMBERED_MAX as u64 {
            deadlines.remaining(shown(n), at(0), Delay::ZERO);
        }
        let held = Delay::from(10 * SECOND);
        // The last ones are known; whoever is not takes the place of another.
        let known = (0..4 * REMEMBERED_MAX as u64)
            .rev()
            .filter(|n| deadlines.remaining(shown(*n), at(0), held) > Remaining::seconds(2))
            .count();
        assert!((REMEMBERED_MAX / 2..=REMEMBERED_MAX).contains(&known), "{known}");
    }
}
