//! How far a process has come in a replay.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::event::EventKind;
use crate::ids::EventNumber;

/// How many are told at the most of those who wait for their turn.
pub const WAITING_MAX: usize = 32;

/// How many are told at the most of the events that have happened again last.
pub const RECENT_MAX: usize = 8;

/// What a process says of its part in a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// How many recorded events have happened again.
    pub done: u64,
    /// How many there are.
    pub of: u64,
    /// The event that must come next; none when all have come.
    pub next: Option<Next>,
    /// Whether the process ends then: nothing more may happen.
    pub must_end: bool,
    /// How long all of it took when it was recorded.
    pub lasted: Duration,
    /// For how long nothing has happened.
    pub idle: Duration,
    /// Who waits for a turn.
    #[serde(deserialize_with = "bounded::list::<_, _, WAITING_MAX>")]
    pub waiting: Vec<AtTurn>,
    /// What has happened again last, the latest at the end.
    #[serde(deserialize_with = "bounded::list::<_, _, RECENT_MAX>")]
    pub recent: Vec<(EventNumber, EventKind)>,
    /// An event has happened in another way than it was recorded.
    pub differs: Option<Differs>,
}

/// The event that must come next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next {
    /// Its place.
    pub number: EventNumber,
    /// What.
    pub kind: EventKind,
    /// How long its control had been on the way to it when it was recorded.
    pub took: Duration,
}

/// An event that waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtTurn {
    /// What.
    pub kind: EventKind,
    /// Its place in the recording; none if what is left of that has no such event.
    pub number: Option<EventNumber>,
}

/// An event that has happened in another way than it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differs {
    /// Its place.
    pub number: EventNumber,
    /// As recorded.
    pub expected: EventKind,
    /// As it happened.
    pub actual: EventKind,
}
