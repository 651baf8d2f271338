//! Real time, virtual time and delay: three types that cannot be mixed up.
//!
//! `virtual = real − delay`. Real times of two machines are never compared, so
//! clock skew cannot matter; delays can be, and are. The only conversions are
//! the ones that the equation allows:
//!
//! ```
//! use std::time::Duration;
//! use ddbx_protocol::{Delay, RealTime};
//!
//! let now = RealTime::from_nanos(5_000);
//! let delay = Delay::from(Duration::from_nanos(2_000));
//! let clock = now - delay;
//! assert_eq!(clock + delay, now);
//! assert_eq!(now.delay_of(clock), delay);
//! ```
//! Mixing them does not compile:
//! ```compile_fail
//! # use ddbx_protocol::{Delay, RealTime};
//! let now = RealTime::from_nanos(5_000);
//! let clock = now - Delay::ZERO;
//! let nonsense = now < clock;
//! ```

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A reading of one process's monotonic clock, in nanoseconds since an origin of
/// its own.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct RealTime(i64);

/// What the clock would have shown without the debugger. May lie before the
/// origin: a process that joins late takes over delays older than itself.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct VirtualTime(i64);

/// For how long something has been held in all.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Delay(u64);

impl RealTime {
    /// The time `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it is not earlier.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(difference(self.0, earlier.0))
    }

    /// The delay of a clock that shows `clock` at this moment; zero for a clock
    /// that is ahead.
    pub const fn delay_of(self, clock: VirtualTime) -> Delay {
        Delay(difference(self.0, clock.0))
    }
}

impl VirtualTime {
    /// The virtual time `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The next moment: just ahead of whoever is here.
    pub const fn just_after(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// How long ago `earlier` was, in virtual time; zero if it is not earlier.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(difference(self.0, earlier.0))
    }
}

impl Delay {
    /// As a length of time.
    pub const fn length(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// Never held.
    pub const ZERO: Self = Self(0);

    /// A delay of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// In nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// By how much this delay is greater; zero if it is not.
    pub const fn beyond(self, other: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(other.0))
    }
}

impl From<Duration> for Delay {
    fn from(held: Duration) -> Self {
        Self(nanos(held))
    }
}

impl Sub<Delay> for RealTime {
    type Output = VirtualTime;
    fn sub(self, delay: Delay) -> VirtualTime {
        VirtualTime(self.0.saturating_sub_unsigned(delay.0))
    }
}

impl Add<Delay> for VirtualTime {
    type Output = RealTime;
    fn add(self, delay: Delay) -> RealTime {
        RealTime(self.0.saturating_add_unsigned(delay.0))
    }
}

impl Add<Duration> for RealTime {
    type Output = Self;
    fn add(self, later: Duration) -> Self {
        Self(self.0.saturating_add_unsigned(nanos(later)))
    }
}

impl Sub<Duration> for RealTime {
    type Output = Self;
    fn sub(self, earlier: Duration) -> Self {
        Self(self.0.saturating_sub_unsigned(nanos(earlier)))
    }
}

impl Add<Duration> for VirtualTime {
    type Output = Self;
    fn add(self, later: Duration) -> Self {
        Self(self.0.saturating_add_unsigned(nanos(later)))
    }
}

impl Sub<Duration> for VirtualTime {
    type Output = Self;
    fn sub(self, earlier: Duration) -> Self {
        Self(self.0.saturating_sub_unsigned(nanos(earlier)))
    }
}

impl Add<Duration> for Delay {
    type Output = Self;
    fn add(self, longer: Duration) -> Self {
        Self(self.0.saturating_add(nanos(longer)))
    }
}

impl AddAssign<Duration> for Delay {
    fn add_assign(&mut self, longer: Duration) {
        *self = *self + longer;
    }
}

impl fmt::Debug for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Δ{:?}", Duration::from_nanos(self.0))
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// `later − earlier`, or zero. The true difference of two i64 fits in a u64.
const fn difference(later: i64, earlier: i64) -> u64 {
    if later > earlier { later.wrapping_sub(earlier) as u64 } else { 0 }
}

/// Durations beyond 584 years saturate: deadlines come from the wire.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_equation_holds(real in -(1i64 << 62)..(1i64 << 62), held in 0u64..(1 << 61)) {
            let (now, delay) = (RealTime(real), Delay(held));
            prop_assert_eq!((now - delay) + delay, now);
            prop_assert_eq!(now.delay_of(now - delay), delay);
        }

        #[test]
        fn nothing_from_the_wire_overflows(real: i64, held: u64, more: u64, secs: u64) {
            let (now, delay) = (RealTime(real), Delay(held));
            let _ = now - delay;
            let _ = (now - Delay::ZERO) + delay;
            let _ = now + Duration::from_secs(secs);
            let _ = delay + Duration::from_secs(secs) + Duration::from_nanos(more);
            let _ = now.since(RealTime(more as i64));
        }
    }
}
