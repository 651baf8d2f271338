//! What deadlines mean in virtual time.
//!
//! A context shows a moment of real time. Between two calls with one context (a retry,
//! say) somebody may have been held, and real time has gone on where virtual time has
//! not. So what a deadline means is settled when it is first used, and remembered.

use std::cell::Cell;
use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ddbx_protocol::{Delay, RealTime, VirtualTime};
use ddbx_satellite::driver::Handle;
use serde::{Deserialize, Serialize};

/// tarpc itself is given a deadline that never comes: the shim keeps the real one,
/// in virtual time. (tokio's timers do not take much more than two years.)
pub(crate) const FAR_AWAY: Duration = Duration::from_secs(30 * DAY_SECONDS);

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
    fn far_away(self) -> Duration {
        FAR_AWAY + self.min(FAR).length()
    }

    /// That deadline, for a call that is made now and whose context shows one.
    #[inline]
    pub(crate) fn given(self, shown: Instant, shows: RealTime, now: RealTime) -> Instant {
        match now + self == shows {
            // Mostly that is what is left of it.
            true => shown + FAR_AWAY,
            false => self.given_now(),
        }
    }

    /// The same, whatever its context shows.
    #[inline(never)]
    pub(crate) fn given_now(self) -> Instant {
        Instant::now() + self.far_away()
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

impl Sub<Remaining> for RealTime {
    type Output = Self;
    #[inline]
    fn sub(self, Remaining(nanos): Remaining) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub_unsigned(nanos))
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
const BELIEVED: Duration = Duration::from_secs(DAY_SECONDS);

thread_local! {
    /// What deadlines are believed without asking the clock.
    static BELIEVED_NOW: Cell<Option<[Instant; 2]>> = const { Cell::new(None) };
}

/// How many are remembered. One whose place another has taken counts as new.
const REMEMBERED_MAX: usize = 2 * 1024;

/// When a call came, with so much left of its deadline, and the one that its handler is to be
/// shown if it need not wait.
#[derive(Clone, Copy, Default)]
pub(crate) struct Came {
    /// None if it follows from the next: few ask.
    clock: Option<RealTime>,
    pub(crate) shown: Option<Instant>,
    pub(crate) allowed: Remaining,
}

impl Came {
    /// Just now.
    pub(crate) fn now(satellite: &Handle, allowed: Remaining) -> Self {
        let now = Instant::now();
        let (clock, shown) = (satellite.at(now), now.checked_add(allowed.length()));
        Self { clock: Some(clock), shown, allowed }
    }

    /// tarpc was given a deadline for it that is far away from when it was sent, and shows it
    /// here: the clock need not be asked.
    #[inline]
    pub(crate) fn given(given: Instant, satellite: &Handle, allowed: Remaining) -> Self {
        match given.checked_sub(FAR_AWAY) {
            Some(shown) if is_believed(shown) => Self { clock: None, shown: Some(shown), allowed },
            shown => Self::given_oddly(shown, satellite, allowed),
        }
    }

    #[inline(never)]
    fn given_oddly(shown: Option<Instant>, satellite: &Handle, allowed: Remaining) -> Self {
        let now = Instant::now();
        match shown.filter(|shown| could_be_shown(*shown, now, allowed)) {
            Some(shown) => {
                let near = (now.checked_sub(BELIEVED), now.checked_add(BELIEVED));
                BELIEVED_NOW.set(near.0.or(Some(now)).zip(near.1).map(|(from, to)| [from, to]));
                Self { clock: None, shown: Some(shown), allowed }
            }
            None => Self::now(satellite, allowed),
        }
    }

    /// What the clock of its process showed then.
    pub(crate) fn clock(&self, satellite: &Handle) -> RealTime {
        let (clock, shown) = (self.clock, self.shown);
        clock.or_else(|| Some(satellite.at(shown?) - self.allowed)).unwrap_or_default()
    }
}

#[inline]
fn is_believed(shown: Instant) -> bool {
    BELIEVED_NOW.get().is_some_and(|[from, to]| from <= shown && shown < to)
}

/// Whether a request that comes now can have been sent with such a deadline, of which so much
/// was left then.
fn could_be_shown(shown: Instant, now: Instant, allowed: Remaining) -> bool {
    let sent = shown.checked_sub(allowed.min(FAR).length());
    sent.is_some_and(|sent| {
        let apart = sent.saturating_duration_since(now).max(now.saturating_duration_since(sent));
        apart < BELIEVED
    })
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
}

impl Default for Deadlines {
    fn default() -> Self {
        let zeros = || (0..REMEMBERED_MAX).map(|_| AtomicU64::new(0)).collect();
        Self { used: zeros(), delays: zeros(), has_delays: AtomicBool::new(false) }
    }
}

impl Deadlines {
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
    fn what_a_context_says_of_its_request_is_believed_if_it_can_be() {
        let (now, day) = (Instant::now(), Duration::from_secs(DAY_SECONDS));
        let second = Remaining::seconds(1);
        let given = |allowed: Remaining| now + allowed.far_away() - FAR_AWAY;
        for allowed in [Remaining(0), second, FAR] {
            assert!(could_be_shown(given(allowed), now, allowed));
            assert!(could_be_shown(given(allowed), now + SECOND, allowed), "it was on its way");
            assert!(!could_be_shown(given(allowed) + day, now, allowed));
        }
        // Somebody has brought its deadline near.
        for near in [SECOND, FAR.length()] {
            let shown = (now + near).checked_sub(FAR_AWAY);
            assert!(shown.is_none_or(|shown| !could_be_shown(shown, now, second)));
        }
        assert_eq!(
            Remaining(u64::MAX).far_away(),
            FAR.far_away(),
            "tokio's timers do not take more"
        );
    }

    #[test]
    fn what_tarpc_is_given_follows_from_what_is_left() {
        let (shown, left) = (Instant::now() + 2 * SECOND, Remaining::seconds(2));
        assert_eq!(left.given(shown, at(3), at(1)), shown + FAR_AWAY);
        // More is left than it shows, for somebody was held.
        let held = Remaining::seconds(60).given(shown, at(3), at(1));
        assert!(held >= shown + FAR_AWAY + 50 * SECOND);
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
