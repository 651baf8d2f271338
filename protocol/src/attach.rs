//! What goes over the connection between a satellite and central: who joins, what
//! [`crate::session`] says about holds and waits, and what people want to see.

use std::time::Duration;
use std::{fmt, io};

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::control::{CALLS_MAX, NAMES_MAX};
use crate::event::Event;
use crate::gate::Gate;
use crate::ids::{BreakpointId, ControlId, EventNumber, MethodName, PointLabel, ProcessName};
use crate::replay::Progress;
use crate::session::{Mode, ProcessIndex, ToCentral, ToSatellite};
use crate::time::{Delay, RealTime, VirtualTime};

/// How much text a value of the program may have when it is shown.
pub const VALUE_BYTES_MAX: usize = 16 * 1024;

/// How many events a message has at the most: names of controls can be long.
pub const EVENTS_MAX: usize = 128;

/// How many breakpoints a process counts at the most.
pub const COUNTS_MAX: usize = 4 * 1024;

/// How many values of a process can be watched.
pub const WATCHED_MAX: usize = 256;

/// How much text they have together: a status must fit into a message.
pub const WATCHED_BYTES_MAX: usize = 128 * 1024;

/// How much text an error of a condition may have.
pub const ERROR_BYTES_MAX: usize = 128;

/// From a satellite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromSatellite {
    /// It wants to take part: the first message of a connection.
    Attach(Attach),
    /// Something about holds and waits.
    Says(ToCentral),
    /// What a stop is; said just before central hears of the stop itself.
    Stands {
        /// The stop's number in the sending process.
        number: u64,
        /// What there is to see.
        standing: Standing,
    },
    /// How the process is doing: at every heartbeat.
    Status(Status),
    /// The names that were met in the process: with a heartbeat, if they have become more.
    Names(Names),
    /// The calls that are in the process, as central has asked.
    Calls {
        /// The number of the question.
        query: u64,
        /// Those calls.
        #[serde(deserialize_with = "bounded::list::<_, _, CALLS_MAX>")]
        calls: Vec<InFlight>,
    },
    /// What has happened, while somebody looks.
    Events {
        /// In the order of the process.
        #[serde(deserialize_with = "bounded::list::<_, _, EVENTS_MAX>")]
        events: Vec<Event>,
        /// How many there was no room for.
        dropped: u64,
    },
    /// How far it has come in a replay.
    Replays(Box<Progress>),
    /// To a question that needs no other answer: all is in force that central said
    /// before it, or all is on the disk that had happened.
    Settled {
        /// The number of the question.
        query: u64,
    },
}

/// To a satellite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromCentral {
    /// It takes part from now on.
    Welcome {
        /// Under this name: the one it asked for, or that with a number.
        name: ProcessName,
        /// How many processes of this name have taken part so far, this one included.
        start: u32,
        /// How the rule is applied in this session.
        mode: Mode,
    },
    /// All that was planted for it before it came has been sent.
    Ready,
    /// Something about holds and waits.
    Says(ToSatellite),
    /// Central is there: said at least every [`crate::session::HEARTBEAT`].
    Heartbeat,
    /// Which calls are in the process?
    Calls {
        /// The number of the question.
        query: u64,
        /// Only those of this control.
        of: Option<ControlId>,
    },
    /// Whether somebody looks at events.
    Observe(bool),
    /// The run is over: what has happened shall be on the disk, if it is recorded, and
    /// what happens now is no part of it. It waits until all have been told: nobody must
    /// record the arrival of something that was never sent.
    Finish {
        /// The number of the question.
        query: u64,
    },
    /// What happens now may happen: all who record have finished.
    GoOn {
        /// The number of the question.
        query: u64,
    },
    /// Is all in force that was said before?
    Settle {
        /// The number of the question.
        query: u64,
    },
}

/// Who wants to take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    /// The number that the process has given itself.
    pub process: ProcessIndex,
    /// The name it would like to have.
    pub name: ProcessName,
    /// The name that its program gives it, if another was asked for: one that was
    /// started by a process of the session may have inherited what it was asked for.
    pub own_name: Option<ProcessName>,
    /// Its number in the operating system.
    pub pid: u32,
    /// What shows that it is the one that took part before.
    pub key: ProcessKey,
}

/// A process's own: all processes know each other's numbers, and only the one that has
/// the key of a process can take part in its place, over another connection.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessKey(u64);

impl ProcessKey {
    /// One that nobody can guess.
    pub fn random() -> io::Result<Self> {
        getrandom::u64().map(Self).map_err(io::Error::from)
    }
}

impl fmt::Debug for ProcessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessKey(..)")
    }
}

/// What there is to see of a stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Before which event.
    pub gate: Gate,
    /// Whose control.
    pub control: ControlId,
    /// The arguments of the call or the values of the point, as JSON, where a
    /// breakpoint has met it.
    pub args: Option<String>,
    /// The result of the call, as JSON, likewise.
    pub result: Option<String>,
    /// The rule makes it wait now; when it may go on, this breakpoint stops it.
    pub awaited: Option<BreakpointId>,
}

/// How a process is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// How many calls are in it now.
    pub in_flight: u64,
    /// How many have come into it so far.
    pub served: u64,
    /// How many it has made so far.
    pub made: u64,
    /// How many controls have begun in it from outside, or from a place that the
    /// shim could not follow.
    pub from_outside: u64,
    /// What happened at each breakpoint.
    #[serde(deserialize_with = "bounded::list::<_, _, COUNTS_MAX>")]
    pub breakpoints: Vec<Count>,
    /// Watched values, as JSON.
    #[serde(deserialize_with = "bounded::list::<_, _, WATCHED_MAX>")]
    pub watched: Vec<(String, String)>,
    /// What is recorded, if anything is.
    pub recorded: Option<RecordedSoFar>,
    /// What there was no room for.
    pub dropped: DroppedHere,
}

/// What there was no room for in a process, so far: the program went on, and this is what
/// people do not see of it. (What a recording lacks is counted there.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedHere {
    /// Events, while somebody looked.
    pub events: u64,
    /// Names of methods and points.
    pub names: u64,
    /// Watched values.
    pub watched: u64,
    /// Other processes that had called it or were called, and were forgotten.
    pub peers: u64,
}

impl DroppedHere {
    /// All of it.
    pub fn total(&self) -> u64 {
        let Self { events, names, watched, peers } = self;
        [events, names, watched, peers].into_iter().fold(0, |sum, more| sum.saturating_add(*more))
    }
}

/// Names that were met in a process, each kind sorted: not more of each than
/// [`crate::control::NAMES_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// The methods that it has handled.
    #[serde(deserialize_with = "bounded::list::<_, _, NAMES_MAX>")]
    pub methods: Vec<MethodName>,
    /// The labels of the points that it has passed.
    #[serde(deserialize_with = "bounded::list::<_, _, NAMES_MAX>")]
    pub points: Vec<PointLabel>,
}

impl Names {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.methods.len() + self.points.len()
    }
}

/// How far the recording of a process has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSoFar {
    /// The last event that is with the operating system: it survives the process.
    pub written: EventNumber,
    /// The last event that is on the disk: it survives a power cut.
    pub durable: EventNumber,
    /// How many entries are missing.
    pub missing: u64,
    /// How many bytes have been written.
    pub bytes: u64,
}

/// What happened at a breakpoint in one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Which.
    pub breakpoint: BreakpointId,
    /// How often it was met, those that it ignores included.
    pub met: u32,
    /// How often its condition could not be evaluated.
    pub errors: u32,
    /// The last such error.
    pub error: Option<String>,
}

/// A call that is in a process: its handler runs, or it stands before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// Whose control.
    pub control: ControlId,
    /// What was called.
    pub method: MethodName,
    /// How many processes wait for it.
    pub depth: u32,
    /// For how long it has been there, in real time.
    pub age: Duration,
    /// The delay of its control, as far as the process knows.
    pub delay: Delay,
    /// When its deadline passes, by the clock of its control.
    pub due: VirtualTime,
    /// What the clock of the process shows.
    pub now: RealTime,
}
