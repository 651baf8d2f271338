//! What nearly all responses say, in one number.

use ddbx_protocol::{Delay, EventNumber};
use serde::{Deserialize, Serialize};

/// A response and what it says. In this order: what the values of a response leave unused at its
/// beginning tells the variants of its envelope apart, for which no more room is needed then.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(C)]
pub struct Short<T> {
    pub(crate) body: T,
    pub(crate) says: Says,
}

/// With which delay a response comes; or, if it comes without any, as which event it was sent.
/// (Whose event that is the caller knows: nobody answers in short who has not said its name.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Told", into = "Told")]
pub(crate) struct Says(u64);

/// The same in a format for people.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    Delay(Delay),
    Sent(EventNumber),
}

/// Set where it is an event. The other bits are its number, or the delay.
const IS_EVENT: u64 = 1;

impl Says {
    /// No delay, and no event.
    pub(crate) const NOTHING: Self = Self(0);

    /// None if there is more to say than fits. The number of an event that nobody wanted to know
    /// of is 0.
    #[inline]
    pub(crate) fn of(delay: Delay, sent: EventNumber) -> Option<Self> {
        let (number, mark) = match sent {
            EventNumber(0) => (delay.as_nanos(), 0),
            EventNumber(sent) if delay == Delay::ZERO => (sent, IS_EVENT),
            EventNumber(_) => return None,
        };
        (number << 1 >> 1 == number).then_some(Self(number << 1 | mark))
    }

    /// The delay.
    #[inline]
    pub(crate) fn delay(self) -> Delay {
        if self.is_event() { Delay::ZERO } else { Delay::from_nanos(self.0 >> 1) }
    }

    /// The event.
    #[inline]
    pub(crate) fn sent(self) -> EventNumber {
        EventNumber(if self.is_event() { self.0 >> 1 } else { 0 })
    }

    /// On the wire.
    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// From there. All are something.
    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    fn is_event(self) -> bool {
        self.0 & IS_EVENT != 0
    }
}

impl From<Says> for Told {
    fn from(says: Says) -> Self {
        match says.is_event() {
            true => Self::Sent(says.sent()),
            false => Self::Delay(says.delay()),
        }
    }
}

impl TryFrom<Told> for Says {
    type Error = &'static str;

    fn try_from(told: Told) -> Result<Self, Self::Error> {
        let says = match told {
            Told::Delay(delay) => Self::of(delay, EventNumber(0)),
            Told::Sent(number) => Self::of(Delay::ZERO, number),
        };
        says.ok_or("a response says in short what is too long for that")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_said_and_the_rest_is_not() {
        let last = u64::MAX >> 1;
        for (nanos, number) in [(0, 0), (5, 0), (last, 0), (0, 1), (0, last)] {
            let says = Says::of(Delay::from_nanos(nanos), EventNumber(number)).unwrap();
            assert_eq!((says.delay().as_nanos(), says.sent().0), (nanos, number));
            assert_eq!(Says::from_bits(says.bits()), says);
            let told = serde_json::to_string(&says).unwrap();
            assert_eq!(serde_json::from_str::<Says>(&told).unwrap(), says, "{told}");
        }
        for (nanos, number) in [(last + 1, 0), (5, 1), (0, last + 1), (0, u64::MAX)] {
            assert_eq!(Says::of(Delay::from_nanos(nanos), EventNumber(number)), None);
        }
        assert_eq!(Says::of(Delay::ZERO, EventNumber(0)), Some(Says::NOTHING));
        assert!(serde_json::from_str::<Says>(r#"{"sent":9223372036854775808}"#).is_err());
    }
}
