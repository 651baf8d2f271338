//! What a log holds, one after the other: the total order of one process.

use std::sync::Arc;

use ddbx_protocol::{
    CallPath, ChoiceName, ControlId, Delay, Event, EventId, EventKind, EventNumber, ProcessName,
    RealTime,
};
use serde::Serialize;
use thiserror::Error;

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// An event of the process.
    Event(Moment),
    /// What a recorded choice came to.
    Choice(Choice),
    /// Something is not in the log, here.
    Gap(Gap),
}

/// An event without the name of its process, which the log says once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Its place in the order of the process.
    pub number: EventNumber,
    /// When, by the clock of the process.
    pub at: RealTime,
    /// The delay of the strand at that moment.
    pub delay: Delay,
    /// What.
    pub kind: EventKind,
}

impl Moment {
    /// The event, as the rest of ddbx knows it.
    pub fn of(self, process: &ProcessName) -> Event {
        let id = EventId { process: process.clone(), number: self.number };
        Event { id, at: self.at, delay: self.delay, kind: self.kind }
    }
}

impl From<Event> for Moment {
    fn from(event: Event) -> Self {
        let Event { id, at, delay, kind } = event;
        Self { number: id.number, at, delay, kind }
    }
}

/// What a recorded choice came to: a time, a random number, a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Whose choice.
    pub control: ControlId,
    /// The call that it handled; none where it began.
    pub call: Option<CallPath>,
    /// What it was about.
    pub name: ChoiceName,
    /// The result, in whatever form the program reads it back.
    pub value: ChoiceValue,
}

/// The result of a choice: a few bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceValue(Arc<[u8]>);

impl ChoiceValue {
    /// How long it can be.
    pub const BYTES_MAX: usize = 4096;

    /// Checks the length.
    pub fn new(value: impl Into<Arc<[u8]>>) -> Result<Self, ValueTooLong> {
        let value = value.into();
        match value.len() {
            len if len > Self::BYTES_MAX => Err(ValueTooLong { len }),
            _ => Ok(Self(value)),
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The result of a choice is too long to be recorded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the result of a recorded choice has {len} bytes, and {} are allowed: record a key or a seed instead",
    ChoiceValue::BYTES_MAX
)]
pub struct ValueTooLong {
    len: usize,
}

/// Entries that were lost at this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// How many.
    pub missing: u64,
    /// Why they are not there.
    pub why: Why,
}

/// Why entries were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Error)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The program was faster than its recorder.
    #[error("the program was faster than its recorder")]
    QueueFull,
    /// There was no room on the disk.
    #[error("the disk was full")]
    DiskFull,
    /// The disk refused to write.
    #[error("the disk refused to write")]
    DiskError,
}
