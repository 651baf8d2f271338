//! How a control comes to be in a process.

use std::time::Instant;

use ddbx_protocol::{CallPath, ControlId, Delay, EventId, RealTime, VirtualTime};
use ddbx_recording::{SentAs, Who};

use super::HAS_SATELLITE;
use crate::deadlines::{Came, DEADLINE_DEFAULT, Remaining};
use crate::envelope::RequestMeta;
use crate::methods::Method;
use crate::naming::Name;
use crate::process::Process;
use crate::seats::Key;

/// Who begins to be in a process.
pub(crate) struct Newcomer<'a> {
    pub(crate) process: Process,
    pub(crate) comes: Comes<'a>,
    pub(crate) delay: Delay,
    pub(crate) is_free: bool,
    /// The call that brings it here.
    pub(crate) method: Option<&'static Method>,
    /// What it has of a deadline.
    pub(crate) allowed: Remaining,
    /// What that means, if nothing stands in its way.
    pub(crate) deadline: Option<Deadline>,
    /// Where a call that was given its context finds it again.
    pub(crate) key: Key,
    /// When it came.
    pub(crate) since: RealTime,
    /// Whether it is not in yet, until [`Control::is_in`].
    pub(crate) is_outside: bool,
}

impl Newcomer<'_> {
    /// A control that begins here without a call.
    pub(crate) fn named(process: &Process, name: ControlId, delay: Delay, is_free: bool) -> Self {
        let satellite = process.satellite().expect(HAS_SATELLITE);
        Self {
            process: process.clone(),
            comes: Comes::Home(Box::new(Home { name: name.into(), call: None })),
            delay,
            is_free,
            method: None,
            allowed: DEADLINE_DEFAULT,
            deadline: None,
            key: Key::unique(satellite.new_strand()),
            since: satellite.now(),
            is_outside: false,
        }
    }
}

/// How a control comes to be in a process.
pub(crate) enum Comes<'a> {
    /// By a call of a session: what came with that is taken from where it is.
    Called(&'a mut Box<RequestMeta>),
    /// It begins here.
    Home(Box<Home>),
}

impl Comes<'_> {
    #[inline]
    pub(crate) fn origin(&self) -> Origin<'_> {
        match self {
            Self::Called(meta) => Origin::Called(meta),
            Self::Home(home) => Origin::Home(home),
        }
    }
}

/// How a control came to be in a process.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// By a call of a session.
    Called(&'a RequestMeta),
    /// It began here.
    Home(&'a Home),
}

impl<'a> Origin<'a> {
    /// Whose control it is. Whoever has no name yet began with the call that it handles here.
    pub(crate) fn id(self, process: &Process, method: &Method) -> ControlId {
        let here = || process.satellite().expect(HAS_SATELLITE).name();
        let (name, home) = match self {
            Self::Called(meta) => (&meta.control, meta.stack.0.first()),
            Self::Home(home) => (&home.name, None),
        };
        name.id(|| home.map_or_else(here, |home| process.controls().peer(*home)), method)
    }

    /// The same in a note.
    #[inline]
    pub(crate) fn who(self, process: &Process, method: &'static Method) -> Who {
        let here = || process.satellite().expect(HAS_SATELLITE).process();
        let (name, home) = match self {
            Self::Called(meta) => (&meta.control, meta.stack.0.first()),
            Self::Home(home) => (&home.name, None),
        };
        name.who(home.copied().unwrap_or_else(here), method)
    }

    /// Which call of the control it is.
    pub(crate) fn call(self) -> Option<&'a CallPath> {
        match self {
            Self::Called(meta) => Some(&meta.path),
            Self::Home(home) => home.call.as_ref(),
        }
    }

    /// As what the call was sent, if anybody wanted to know of that.
    pub(crate) fn departure(self, process: &Process) -> Option<EventId> {
        let Self::Called(meta) = self else { return None };
        process.controls().departure(meta.stack.top()?, meta.left.sent)
    }

    /// The same in a note.
    #[inline]
    pub(crate) fn sent_as(self) -> SentAs {
        let Self::Called(meta) = self else { return SentAs::default() };
        let sent = |process| SentAs { process, number: meta.left.sent };
        meta.stack.top().map(sent).unwrap_or_default()
    }
}

/// A control that began in the process where it is.
pub(crate) struct Home {
    pub(crate) name: Name,
    /// The call with which it began, if it was one from outside.
    pub(crate) call: Option<CallPath>,
}

/// Until when, in virtual time, and what the handler was shown of it.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) due: VirtualTime,
    pub(crate) shown: Option<Instant>,
}

impl Deadline {
    /// So much of it is left now, for a control with this delay.
    #[inline]
    pub(crate) fn new(came: Came, delay: Delay, allowed: Remaining) -> Self {
        Self { due: (came.clock - delay) + allowed, shown: came.shown }
    }
}
