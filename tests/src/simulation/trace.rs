//! What happened in a run.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use ddbx_protocol::{Delay, RealTime, VirtualTime};

use super::program::Nanos;

/// One gated event of the program, in the order in which they happened.
#[derive(Clone, Debug)]
pub struct Happened {
    /// The same in every run of a program.
    pub name: Rc<str>,
    /// Where.
    pub process: usize,
    /// The control, branches apart.
    pub strand: Rc<str>,
    /// What.
    pub what: What,
    /// When.
    pub at: RealTime,
    /// The strand's delay then.
    pub delay: Delay,
}

impl Happened {
    /// When, in virtual time.
    pub fn clock(&self) -> VirtualTime {
        self.at - self.delay
    }
}

/// Kinds of events that checkers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A control starts.
    Started,
    /// A request leaves.
    CallSent,
    /// A request reaches its handler.
    CallArrived,
    /// A response leaves.
    ReturnSent,
    /// A response reaches the caller.
    ReturnArrived,
    /// A cancellation reaches the callee.
    Cancelled,
    /// A deadline runs out, at the caller or the callee.
    TimedOut,
    /// A lease runs out.
    LeaseLost,
    /// A sleep is over.
    Woke,
    /// Anything else that is gated.
    Passed,
    /// A lock is taken (not gated itself, but its virtual time must hold).
    Acquired,
    /// A handler of a single-threaded process begins (likewise).
    Entered,
    /// It is over, in whatever way (likewise).
    Left,
}

impl What {
    /// Whether the rule orders it among the other events of its process.
    pub fn is_gated(self) -> bool {
        !matches!(self, Self::Acquired | Self::Entered | Self::Left)
    }

    /// Whether something ran out.
    pub fn is_timeout(self) -> bool {
        matches!(self, Self::TimedOut | Self::LeaseLost)
    }
}

/// A time during which a strand stood still.
#[derive(Clone, Debug)]
pub struct Stood {
    /// Where.
    pub process: usize,
    /// From when.
    pub from: RealTime,
    /// Until when; none if it never went on.
    pub until: Option<RealTime>,
    /// Its delay when it stopped.
    pub delay_before: Delay,
    /// Its delay when it went on.
    pub delay_after: Delay,
    /// Whether it was the first event of a newcomer, who came when nobody else
    /// stood still.
    pub came_in_peace: bool,
}

/// Everything about one run that checkers look at.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// In the order in which they happened.
    pub events: Vec<Happened>,
    /// Every stop.
    pub stood: Vec<Stood>,
    /// Controls and handlers that never ended.
    pub stuck: Vec<String>,
    /// While at least one hold of the user's was in force.
    pub held: Vec<(RealTime, RealTime)>,
    /// How many holds of the user's there were.
    pub holds: u64,
    /// When each of them, and each pause, began, as central heard of it.
    pub holds_at: Vec<RealTime>,
    /// Debugger messages by kind.
    pub messages: BTreeMap<&'static str, u64>,
    /// Debugger messages by process, after the start.
    pub messages_by_process: BTreeMap<usize, u64>,
    /// When controls from outside started, in virtual time.
    pub outside_starts: BTreeMap<usize, Nanos>,
    /// When the debugger lost something.
    pub faults_at: Vec<RealTime>,
    /// Whether a floor ever fell.
    pub floor_fell: bool,
    /// For how long the user held each event.
    pub held_at: BTreeMap<Rc<str>, Nanos>,
    /// Calls of which a message had to wait for another on its connection.
    pub hindered: BTreeSet<Rc<str>>,
    /// Processes in which the user held something.
    pub held_in: BTreeSet<usize>,
}

impl Trace {
    /// The virtual time of every event by name.
    pub fn clocks(&self) -> BTreeMap<&str, VirtualTime> {
        self.events.iter().map(|event| (&*event.name, event.clock())).collect()
    }

    /// The total time during which the user held something.
    pub fn held_total(&self) -> Nanos {
        self.held.iter().map(|(from, to)| to.since(*from).as_nanos() as Nanos).sum()
    }
}
