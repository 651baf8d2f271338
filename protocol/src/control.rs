//! What people, or programs for them, ask of a session, and the answers. These are
//! also what `--json` prints, so their names are part of the interface.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::attach::DroppedHere;
use crate::breakpoint::Scope;
use crate::event::Event;
use crate::ids::{BreakpointId, ControlId, HoldId, MethodName};
use crate::replay::Progress;

/// What is asked of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// How is the session?
    Session,
    /// Who takes part?
    Processes,
    /// Stop controls here.
    Break(Wanted),
    /// Which breakpoints are there?
    Breakpoints,
    /// Remove a breakpoint, or all. Whoever stands at it stays.
    Delete(Option<BreakpointId>),
    /// Plant a breakpoint again, or nowhere for now. Whoever stands at it stays.
    Enable {
        /// Which.
        breakpoint: BreakpointId,
        /// Whether it is planted from now on.
        enabled: bool,
    },
    /// Make another of a breakpoint. It keeps its number and its hits, and whoever stands
    /// at it stays.
    Change {
        /// Which.
        breakpoint: BreakpointId,
        /// What it shall be.
        wanted: Wanted,
    },
    /// Who stands still?
    Holds,
    /// How did this one come to where it stands?
    Backtrace(HoldId),
    /// Which calls are in flight?
    Calls,
    /// Let somebody go on, under the rule.
    Continue(Whom),
    /// Let this one go on whatever the rule says.
    Release(HoldId),
    /// Hold a process, or all.
    Pause(Option<String>),
    /// Which values are watched?
    Watched,
    /// How far has each process come in the replay?
    Replay,
    /// What has happened, and, if asked, what happens from now on.
    Events {
        /// Whether to go on.
        follow: bool,
    },
    /// Answer when somebody stands at this breakpoint.
    Wait {
        /// Which.
        breakpoint: BreakpointId,
        /// How long at the most.
        timeout: Duration,
    },
    /// End the session.
    Stop,
}

/// How many calls are told at the most.
pub const CALLS_MAX: usize = 2_000;

/// How many holds are told at the most.
pub const HOLDS_MAX: usize = 10_000;

/// How many breakpoints a session has at the most.
pub const BREAKPOINTS_MAX: usize = crate::attach::COUNTS_MAX;

/// How many names of a kind are told of a process at the most.
pub const NAMES_MAX: usize = 256;

/// Who shall go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whom {
    /// The only one that is held.
    TheOnly,
    /// This one.
    Hold(HoldId),
    /// All that is held in this process, and the process if it is paused.
    Process(String),
    /// Everybody.
    All,
}

/// A breakpoint as the user asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Where: `process:Service.method@event` or `process:point(label)`.
    pub spec: String,
    /// Whom it stops.
    pub scope: Scope,
    /// How many times it is passed first.
    pub ignore: u32,
    /// Whether it stops only once.
    pub once: bool,
    /// It stops only whom this holds for.
    pub condition: Option<String>,
    /// How long it holds whom it stops; none for until told.
    #[serde(rename = "hold_for_ms", with = "millis")]
    pub hold_for: Option<Duration>,
}

/// What a session answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// To [`Request::Session`].
    Session(SessionView),
    /// To [`Request::Processes`].
    Processes(Vec<ProcessView>),
    /// To [`Request::Break`], [`Request::Enable`] and [`Request::Change`]: as it is now.
    Breakpoint(BreakpointView),
    /// To [`Request::Breakpoints`].
    Breakpoints(Vec<BreakpointView>),
    /// To [`Request::Holds`]: the oldest first, and not more than [`HOLDS_MAX`]. If there are
    /// more, those that the user holds are among them.
    Holds(Vec<HoldView>),
    /// To [`Request::Backtrace`].
    Backtrace(Backtrace),
    /// To [`Request::Calls`]: the oldest first, and not more than [`CALLS_MAX`].
    Calls(Vec<CallView>),
    /// To [`Request::Watched`].
    Watched(Vec<WatchView>),
    /// To [`Request::Replay`].
    Replay(Vec<ReplayView>),
    /// To [`Request::Events`]: one after the other.
    Notice(Notice),
    /// To [`Request::Events`] without `follow`: that was all.
    End,
    /// To [`Request::Wait`]: who stands there.
    Hit(HoldView),
    /// To [`Request::Wait`]: nobody came.
    TimedOut,
    /// It is done, to so many.
    Done(u64),
    /// It cannot be done: why, and what to do.
    Refused(String),
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionView {
    /// How long it has been running.
    pub age_ms: u64,
    /// How many processes take part.
    pub processes: u64,
    /// How many controls the user holds.
    pub held: u64,
    /// How many wait because of that.
    pub waiting: u64,
    /// Whether the order of events is still that of a run without ddbx: nobody was
    /// let go anyway.
    pub order_guaranteed: bool,
    /// How many messages about holds and waits central has sent.
    pub messages_sent: u64,
    /// How many processes have left, or were lost, so far.
    pub left: u64,
    /// What there was no room for.
    pub dropped: Dropped,
}

/// What there was no room for in a session, so far: programs went on, and this is what
/// people do not see of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Events of programs that came faster than they could be told.
    pub events: u64,
    /// Events and notices that listeners were too slow for.
    pub missed: u64,
    /// The oldest notices, which whoever begins to listen is not told.
    pub notices: u64,
    /// Arguments and results of those who stand still.
    pub values: u64,
    /// Controls that were let go because too many stand still.
    pub stops: u64,
    /// Processes that had left and are forgotten.
    pub processes: u64,
    /// Connections of processes that took nothing any more, or said too much.
    pub connections: u64,
}

impl Dropped {
    /// All of it, but for old notices: that they are forgotten is as it should be.
    pub fn total(&self) -> u64 {
        let Self { events, missed, notices: _, values, stops, processes, connections } = self;
        let all = [events, missed, values, stops, processes, connections];
        all.into_iter().fold(0, |sum, more| sum.saturating_add(*more))
    }
}

/// A process of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessView {
    /// Its name in this session.
    pub name: String,
    /// Its number in the operating system.
    pub pid: u32,
    /// `running`, `waiting` for others, `held` by the user, or `gone`.
    pub state: ProcessState,
    /// Whether it is paused.
    pub paused: bool,
    /// Its virtual clock: real time since the session began, less its delay. Less than
    /// nothing if the delay is from an earlier session.
    pub clock_ms: i64,
    /// Its delay: for how long it has been held or made to wait so far.
    pub delay_ms: u64,
    /// How many calls are in it.
    pub in_flight: u64,
    /// How many calls have come into it so far.
    pub served: u64,
    /// How many calls it has made so far.
    pub made: u64,
    /// How many controls the user holds in it.
    pub held: u64,
    /// How many wait in it because of a hold.
    pub waiting: u64,
    /// Controls that began in it from outside, or whose origin was lost.
    pub from_outside: u64,
    /// Whom it calls.
    pub calls: Vec<String>,
    /// The methods that it has handled so far, sorted; not more than [`NAMES_MAX`].
    pub methods: Vec<String>,
    /// The labels of the points that it has passed so far, likewise.
    pub points: Vec<String>,
    /// The last event that is written to its recording: it survives the process.
    pub written: Option<u64>,
    /// The last event that is on the disk: it survives a power cut.
    pub durable: Option<u64>,
    /// How many entries are missing in its recording.
    pub missing: Option<u64>,
    /// What there was no room for in it.
    pub dropped: DroppedHere,
}

/// What a process is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// Nobody in it stands still.
    Running,
    /// Somebody in it waits because of a hold.
    Waiting,
    /// The user holds somebody in it, or all of it.
    Held,
    /// It has left.
    Gone,
}

/// A breakpoint of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakpointView {
    /// Which.
    pub id: BreakpointId,
    /// As it was asked for.
    #[serde(flatten)]
    pub wanted: Wanted,
    /// Whether it is planted at all.
    pub enabled: bool,
    /// The processes in which it is planted now.
    pub processes: Vec<String>,
    /// How often it has stopped somebody.
    pub hits: u64,
    /// How often it was met, those that it ignored included.
    pub met: u64,
    /// Whether it has stopped its one control.
    pub spent: bool,
    /// How often its condition could not be evaluated.
    pub errors: u64,
    /// The last such error.
    pub last_error: Option<String>,
}

/// Somebody who stands still.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldView {
    /// Which.
    pub id: HoldId,
    /// Where.
    pub process: String,
    /// Before which event: `Inventory.reserve@arrive`, `point(label)`, `deadline`.
    pub at: String,
    /// Whose control.
    pub control: Option<ControlId>,
    /// Why.
    pub reason: HoldReason,
    /// The breakpoint, if that is why.
    pub breakpoint: Option<BreakpointId>,
    /// Whom it waits for, whom that one waits for, and so on.
    pub because_of: Vec<HoldId>,
    /// For how long it has been standing.
    pub held_ms: u64,
    /// If it waits for others: for how long it still must, at the least, once the last of
    /// them goes on. In real time.
    pub at_least_ms: Option<u64>,
    /// The arguments, if a breakpoint has met it.
    pub args: Option<serde_json::Value>,
    /// The result, likewise.
    pub result: Option<serde_json::Value>,
}

/// Why somebody stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// It has hit a breakpoint.
    Breakpoint,
    /// Its process is held, by a breakpoint or a pause.
    Halt,
    /// Going on could change the order of events.
    Delay,
}

/// How a control came to where it stands, across processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Backtrace {
    /// Who stands there.
    pub hold: HoldView,
    /// The innermost first.
    pub frames: Vec<FrameView>,
}

/// One process on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameView {
    /// Which.
    pub process: String,
    /// The call that it handles; none where the control began.
    pub method: Option<MethodName>,
    /// For how long the call has been there, in real time.
    pub age_ms: Option<u64>,
    /// What is left of its deadline, in virtual time.
    pub remaining_ms: Option<u64>,
}

/// A call that is in a process: its handler runs, or it stands before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallView {
    /// Which process handles it.
    pub process: String,
    /// What was called.
    pub method: MethodName,
    /// Whose control.
    pub control: ControlId,
    /// How many processes wait for it.
    pub depth: u32,
    /// For how long it has been there, in real time.
    pub age_ms: u64,
    /// What is left of its deadline, in virtual time.
    pub remaining_ms: Option<u64>,
    /// The hold in which its control stands, if it stands in this process.
    pub hold: Option<HoldId>,
}

/// A process in a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayView {
    /// Which.
    pub process: String,
    /// How many of this name have been started so far, this one included.
    pub start: u32,
    /// Whether it is still there.
    pub is_there: bool,
    /// How far it has come.
    pub progress: Progress,
}

/// A watched value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchView {
    /// Where.
    pub process: String,
    /// Its name.
    pub name: String,
    /// The last value.
    pub value: serde_json::Value,
}

/// Something that happened in the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// When, since the session began.
    pub at_ms: u64,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A process has joined.
    Joined(String),
    /// A process has left.
    Left(String),
    /// Somebody stands still, or for another reason than before.
    Stands(HoldView),
    /// Somebody goes on.
    GoesOn {
        /// Who stood.
        hold: HoldId,
        /// Where.
        process: String,
        /// For how long.
        held_ms: u64,
    },
    /// A breakpoint was set.
    BreakpointSet(BreakpointView),
    /// A breakpoint was made another, or is planted again, or nowhere for now.
    Changed(BreakpointView),
    /// A breakpoint was removed.
    BreakpointDeleted(BreakpointId),
    /// The user holds a process, or ends that.
    Paused {
        /// Which.
        process: String,
        /// Whether it is held from now on.
        paused: bool,
    },
    /// The user let somebody go on whatever the rule says.
    Released(HoldId),
    /// An event of the program.
    Event(Event),
    /// So much was not kept: the reader or the network was too slow.
    Missed(u64),
}

/// Lengths of time are whole milliseconds in JSON.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        length: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let millis = length.map(|length| u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
        millis.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}
