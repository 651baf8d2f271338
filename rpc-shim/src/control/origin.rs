//! How a control comes to be in a process.

use std::borrow::Cow;

use ddbx_protocol::{CallPath, ControlId, Delay, EventId, ProcessIndex};
use ddbx_recording::{Beginning, Happens, Note, SentAs, ToNote, Who};

use super::HAS_SATELLITE;
use crate::deadlines::{Came, DEADLINE_DEFAULT};
use crate::envelope::{Brief, FIRST, RequestMeta};
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
    /// When it came, and what it has of a deadline.
    pub(crate) came: Came,
    /// Whether it is in: nothing stands in its way. Otherwise it is with [`Control::is_in`].
    pub(crate) is_in: bool,
    /// Where a call that was given its context finds it again.
    pub(crate) key: Key,
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
            came: Came::now(satellite, DEADLINE_DEFAULT),
            is_in: true,
            key: Key::unique(satellite.new_strand()),
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
        let (name, home) = self.name();
        name.id(|| home.map_or_else(here, |home| process.controls().peer(home)), method)
    }

    /// The same in a note.
    pub(crate) fn who(self, process: &Process, method: &'static Method) -> Who {
        let here = || process.satellite().expect(HAS_SATELLITE).process();
        let (name, home) = self.name();
        name.who(home.unwrap_or_else(here), method)
    }

    /// What happens to the call that brought it here.
    #[inline(always)]
    pub(crate) fn note(self, process: &Process, method: &'static Method, what: Happens) -> ToNote {
        if let Self::Called(meta) = self
            && meta.more().is_none()
        {
            let Brief { caller: home, hash, nth, .. } = meta.brief;
            let beginning = Beginning { home, method: &method.name, hash, nth };
            return ToNote::Usual { beginning, nth: FIRST, what };
        }
        let path = self.call().expect("a call brought it here");
        ToNote::Any(Note { control: self.who(process, method), path, what })
    }

    /// Its name, and where it began if that was elsewhere.
    fn name(self) -> (Cow<'a, Name>, Option<ProcessIndex>) {
        match self {
            Self::Called(meta) => (meta.control(), meta.home()),
            Self::Home(home) => (Cow::Borrowed(&home.name), None),
        }
    }

    /// Which call of the control it is.
    pub(crate) fn call(self) -> Option<CallPath> {
        match self {
            Self::Called(meta) => Some(meta.path()),
            Self::Home(home) => home.call.clone(),
        }
    }

    /// As what the call was sent, if anybody wanted to know of that.
    pub(crate) fn departure(self, process: &Process) -> Option<EventId> {
        let Self::Called(meta) = self else { return None };
        process.controls().departure(meta.caller()?, meta.brief.sent)
    }

    /// The same in a note.
    #[inline]
    pub(crate) fn sent_as(self) -> SentAs {
        let Self::Called(meta) = self else { return SentAs::default() };
        let sent = |process| SentAs { process, number: meta.brief.sent };
        meta.caller().map(sent).unwrap_or_default()
    }
}

/// A control that began in the process where it is.
pub(crate) struct Home {
    pub(crate) name: Name,
    /// The call with which it began, if it was one from outside.
    pub(crate) call: Option<CallPath>,
}
