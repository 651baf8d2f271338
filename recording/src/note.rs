//! What happens to calls, as the program's threads put it into a queue.
//!
//! Nearly all events are of calls, and most calls are of controls that begin with them. To
//! name one is to make a text, and the names of processes are behind locks: that is more work
//! than all the rest. So a note has numbers, and whoever writes it down, or reads it, makes
//! names of them.

use ddbx_protocol::{
    CallId, CallPath, ControlId, Delay, EventId, EventKind, EventNumber, MethodName, ProcessIndex,
    ProcessName, RealTime,
};

use crate::entry::Moment;

/// Something that happens to a call.
#[derive(Clone, Debug)]
pub struct Note {
    /// Whose call it is.
    pub control: Who,
    /// Which of its calls.
    pub path: CallPath,
    /// What happens to it.
    pub what: Happens,
}

/// What there is to note.
#[derive(Clone, Debug)]
pub enum ToNote {
    /// Something happens to a call that a control makes where it began, with a call from outside:
    /// nearly always. Of this nothing has to be made, moved about or dropped.
    Usual {
        /// With what the control began.
        beginning: Beginning,
        /// Which of its calls.
        nth: u32,
        /// What happens to it.
        what: Happens,
    },
    /// Anything.
    Any(Note),
}

impl From<Note> for ToNote {
    fn from(note: Note) -> Self {
        Self::Any(note)
    }
}

impl From<ToNote> for Note {
    fn from(note: ToNote) -> Self {
        match note {
            ToNote::Usual { beginning, nth, what } => {
                Self { control: Who::Begun(beginning), path: CallPath::root(nth), what }
            }
            ToNote::Any(note) => note,
        }
    }
}

/// Whose call it is.
#[derive(Clone, Debug)]
pub enum Who {
    /// A control that has a name.
    Named(ControlId),
    /// One that has begun with a call from outside.
    Begun(Beginning),
}

/// With what a control has begun, which is its name: see [`ControlId::of_call`].
#[derive(Clone, Copy, Debug)]
pub struct Beginning {
    /// Where.
    pub home: ProcessIndex,
    /// With a call of this. Methods stay for as long as the program.
    pub method: &'static MethodName,
    /// With which arguments.
    pub hash: u64,
    /// The how manieth of that kind.
    pub nth: u32,
}

impl Beginning {
    /// The name.
    pub fn id(&self, name: impl FnOnce(ProcessIndex) -> ProcessName) -> ControlId {
        ControlId::of_call(&name(self.home), self.method, self.hash, self.nth)
    }
}

/// What happens to a call: see [`EventKind`].
#[derive(Clone, Copy, Debug)]
pub enum Happens {
    /// It leaves.
    CallSent {
        /// What is called.
        method: &'static MethodName,
        /// What tells it from others.
        content: u16,
    },
    /// It arrives.
    CallArrived {
        /// What is called.
        method: &'static MethodName,
        /// As what it was sent.
        sent_as: SentAs,
    },
    /// Its answer leaves.
    ReturnSent,
    /// Its answer arrives.
    ReturnArrived {
        /// As what it was sent.
        sent_as: SentAs,
    },
}

/// An event of another process; none with the number 0, if nobody wanted to know of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentAs {
    /// Where.
    pub process: ProcessIndex,
    /// Its place there.
    pub number: EventNumber,
}

impl SentAs {
    /// The process, if there is an event.
    pub(crate) fn process(&self) -> Option<ProcessIndex> {
        (self.number != EventNumber::default()).then_some(self.process)
    }
}

/// A note, and when it was made.
#[derive(Clone, Debug)]
pub struct Noted {
    /// Its place in the order of the process.
    pub number: EventNumber,
    /// When, by the clock of the process.
    pub at: RealTime,
    /// The delay of the strand at that moment.
    pub delay: Delay,
    /// What.
    pub note: Note,
}

impl Noted {
    /// The same in full, as far as it is known who is who.
    pub fn in_full(&self, name: impl Fn(ProcessIndex) -> ProcessName) -> Moment {
        let Self { number, at, delay, note } = self;
        let control = match &note.control {
            Who::Named(id) => id.clone(),
            Who::Begun(beginning) => beginning.id(&name),
        };
        let call = CallId { control, path: note.path.clone() };
        let event = |sent_as: SentAs| {
            let process = name(sent_as.process()?);
            Some(EventId { process, number: sent_as.number })
        };
        let kind = match note.what {
            Happens::CallSent { method, content } => {
                EventKind::CallSent { call, method: method.clone(), content }
            }
            Happens::CallArrived { method, sent_as } => {
                let (method, sent_as) = (method.clone(), event(sent_as));
                EventKind::CallArrived { call, method, sent_as }
            }
            Happens::ReturnSent => EventKind::ReturnSent { call },
            Happens::ReturnArrived { sent_as } => {
                EventKind::ReturnArrived { call, sent_as: event(sent_as) }
            }
        };
        Moment { number: *number, at: *at, delay: *delay, kind, payload: None }
    }
}
