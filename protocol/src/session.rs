//! What satellites and central say to each other about holds and waits.
//!
//! A *stop* is a strand that stands still: because of the user, or because of
//! the rule. Each has a frozen clock; the greater its delay *now*, the earlier
//! that clock. Messages that tell of frozen clocks also tell the time of sending,
//! both by the sender's own clock: see [`crate::reading`].

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::bounded::{self, Short};
use crate::breakpoint::Breakpoint;
use crate::ids::BreakpointId;
use crate::time::{Delay, RealTime, VirtualTime};

/// A satellite that has heard nothing from central for this long, or the other
/// way round, goes on alone.
pub const LEASE: Duration = Duration::from_secs(2);

/// Each side says something at least this often.
pub const HEARTBEAT: Duration = Duration::from_millis(500);

/// How deep calls may nest: so many processes can wait for one call.
pub const STACK_MAX: usize = 256;

/// How many stops whose end is known a process is told of at the most.
pub const TIMED_MAX: usize = 64 * 1024;

/// How the rule is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// By each satellite, from what central has told it.
    #[default]
    Permit,
    /// By central, which is asked at every event: the reference. What is held elsewhere only
    /// central knows, so if it is lost deadlines may fire that waited for that.
    Ask,
}

/// A process's number in this session, given by central.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ProcessIndex(pub u64);

impl fmt::Display for ProcessIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

/// A stop: where, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StopId {
    /// The process in which the strand stands.
    pub process: ProcessIndex,
    /// Counted by that process's satellite.
    pub number: u64,
}

impl fmt::Display for StopId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.process, self.number)
    }
}

/// Where a strand can still have an effect: on the processes of its call stack
/// and on whatever they reach by calls.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stack(pub Short<ProcessIndex>);

impl Clone for Stack {
    // All at once, not one after the other.
    #[inline]
    fn clone(&self) -> Self {
        Self(Short::from_slice(&self.0))
    }
}

impl Stack {
    /// A control that starts in `home`.
    #[inline]
    pub fn home(home: ProcessIndex) -> Self {
        Self(Short::from_slice(&[home]))
    }

    /// Makes it that of a control that starts in `home`: in place, since mostly it is one.
    #[inline]
    pub fn set_home(&mut self, home: ProcessIndex) {
        match &mut *self.0 {
            [only] => *only = home,
            _ => *self = Self::home(home),
        }
    }

    /// After a call into `callee`. Beyond all depth it is taken for where it was.
    pub fn call(mut self, callee: ProcessIndex) -> Self {
        if self.0.len() <= STACK_MAX {
            self.0.push(callee);
        }
        self
    }

    /// The process in which the strand is.
    #[inline]
    pub fn top(&self) -> Option<ProcessIndex> {
        self.0.last().copied()
    }
}

impl Serialize for Stack {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_slice().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Stack {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bounded::short::<_, _, { STACK_MAX + 1 }>(deserializer).map(Self)
    }
}

/// Why a strand stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StopReason {
    /// It hit a breakpoint.
    Breakpoint(BreakpointId),
    /// Its process is held, by a breakpoint of scope `process` or a pause.
    Process,
    /// The rule: going on could change the order of events.
    Delay,
    /// It waits inside the program (a lock, a queue) while its process is
    /// blocked. Its clock runs, but what affects its process affects it.
    Inside,
}

impl StopReason {
    /// Whether its clock stands.
    pub fn stands(self) -> bool {
        self != Self::Inside
    }

    /// Whether only the user can end it.
    pub fn is_users(self) -> bool {
        matches!(self, Self::Breakpoint(_) | Self::Process)
    }
}

/// From a satellite to central.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToCentral {
    /// A strand stands still, or stands still for another reason now.
    Stopped {
        /// Its number in the sending process.
        number: u64,
        /// Why.
        reason: StopReason,
        /// Where it may still have an effect.
        stack: Stack,
        /// Its clock, which stands.
        clock: VirtualTime,
        /// The time of sending.
        sent: RealTime,
    },
    /// A strand goes on, or is gone, with this delay.
    Gone {
        /// Its number in the sending process.
        number: u64,
        /// Its delay from now on.
        delay: Delay,
    },
    /// Somebody came into the process with a greater delay than was known.
    Raised {
        /// The greatest delay in the process.
        floor: Delay,
    },
    /// The process can call another one from now on.
    Connected {
        /// Which.
        to: ProcessIndex,
    },
    /// Another process can call this one from now on: its first call is here.
    Accepted {
        /// Which.
        from: ProcessIndex,
    },
    /// Ask mode: may this event happen?
    Ask {
        /// Its number in the sending process.
        number: u64,
        /// Where the strand may still have an effect.
        stack: Stack,
        /// Its delay; none for a newcomer, which takes over the greatest.
        delay: Option<Delay>,
        /// The time of sending.
        sent: RealTime,
    },
}

/// From central to a satellite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToSatellite {
    /// The rule for this process, whole: replaces what was there.
    Permit(Permit),
    /// A stop that others waited for is gone without a word. Whoever is not
    /// blocked by anything else goes on at once, with at least this delay.
    Vanished {
        /// The rule from now on.
        permit: Permit,
    },
    /// The user lets a stop go on, under the rule.
    Continue {
        /// Its number in the receiving process.
        number: u64,
    },
    /// The user lets a stop go on whatever the rule says.
    Force {
        /// Its number in the receiving process.
        number: u64,
    },
    /// The user lets a stop pass this one gate whatever the rule says.
    Pass {
        /// Its number in the receiving process.
        number: u64,
    },
    /// The user pauses the process, or ends the pause.
    Pause(bool),
    /// A breakpoint to watch for; replaces one of the same id.
    Plant(Breakpoint),
    /// A breakpoint to forget.
    Remove(BreakpointId),
    /// Ask mode: the event may happen, with this delay.
    Granted {
        /// Its number in the receiving process.
        number: u64,
        /// The delay from now on.
        delay: Delay,
    },
}

/// What a process must know to apply the rule by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    /// The time of sending.
    pub sent: RealTime,
    /// The greatest delay of any client so far; it only rises.
    pub floor: Delay,
    /// The stop elsewhere that is furthest behind and whose end nobody knows:
    /// whoever is not behind it waits.
    pub open: Option<Open>,
    /// Stops elsewhere whose end is known, furthest behind first.
    #[serde(deserialize_with = "bounded::list::<_, _, TIMED_MAX>")]
    pub timed: Vec<Timed>,
}

/// A stop elsewhere that only the user can end, directly or through others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Its clock, as central reads it.
    pub clock: VirtualTime,
    /// Which.
    pub by: StopId,
}

/// A stop elsewhere that will go on with a known delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timed {
    /// Its clock, as central reads it.
    pub clock: VirtualTime,
    /// The delay with which it goes on.
    pub leaves_with: Delay,
    /// Which.
    pub by: StopId,
}
