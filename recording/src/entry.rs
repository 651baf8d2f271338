//! What a log holds, one after the other: the total order of one process.

use std::fmt;
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
    /// What was said, if that is kept too.
    pub payload: Option<Box<Payload>>,
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
        Self { number: id.number, at, delay, kind, payload: None }
    }
}

/// What was said at an event, as JSON: the arguments of a call, its result, or the values of a
/// point. Of what is long only the beginning is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    text: Box<str>,
    bytes: u64,
}

impl Payload {
    /// How much of one is kept.
    pub const BYTES_MAX: usize = 4096;

    /// What is kept of this text.
    pub fn new(text: &str) -> Self {
        let kept = &text[..text.floor_char_boundary(Self::BYTES_MAX)];
        Self { text: kept.into(), bytes: text.len() as u64 }
    }

    /// One that was kept: the beginning of a text of so many bytes. None if no text is like
    /// that.
    pub(crate) fn kept(text: &str, bytes: u64) -> Option<Self> {
        let is_whole = text.len() as u64 == bytes;
        // A character can lie across the limit.
        let is_cut = (text.len() as u64) < bytes && text.len() + 4 > Self::BYTES_MAX;
        let fits = text.len() <= Self::BYTES_MAX && (is_whole || is_cut);
        fits.then(|| Self { text: text.into(), bytes })
    }

    /// The text, as far as it is kept.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How long all of it was.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there was more.
    pub fn is_cut(&self) -> bool {
        (self.text.len() as u64) < self.bytes
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match self.is_cut() {
            true => write!(f, "… ({} bytes in all)", self.bytes),
            false => Ok(()),
        }
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

#[cfg(test)]
mod tests {
    use super::Payload;

    #[test]
    fn of_what_is_long_the_beginning_is_kept_and_marked() {
        let short = Payload::new("{\"item\":7}");
        assert_eq!((short.text(), short.is_cut()), ("{\"item\":7}", false));
        assert_eq!(short.to_string(), "{\"item\":7}");
        let exact = "x".repeat(Payload::BYTES_MAX);
        assert!(!Payload::new(&exact).is_cut());
        // A character of two bytes lies across the limit.
        let long = format!("x{}", "é".repeat(Payload::BYTES_MAX));
        let cut = Payload::new(&long);
        assert_eq!(cut.text().len(), Payload::BYTES_MAX - 1);
        assert!(cut.is_cut() && cut.to_string().ends_with("é… (8193 bytes in all)"));
        for payload in [&short, &Payload::new(&exact), &cut] {
            assert_eq!(Payload::kept(payload.text(), payload.bytes()).as_ref(), Some(payload));
        }
        assert_eq!(Payload::kept("short", 9), None, "nobody cuts there");
        assert_eq!(Payload::kept("longer", 2), None);
        assert_eq!(Payload::kept(&long, 8193), None);
    }
}
