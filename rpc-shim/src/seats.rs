//! The controls that are in a process. Each has a place, which others take after it: so
//! calls make no room for them and do not wait for each other, and whoever asks who is
//! here looks at all places.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::LocalKey;

use ddbx_protocol::ProcessIndex;
use ddbx_satellite::logic::strand::StrandId;
use ddbx_satellite::roster::Roster;
use ddbx_satellite::shelf::{self, Kept, Shelves};

use crate::control::Control;

mod place;

use place::Place;
pub(crate) use place::{Guest, Left, Vacant};

/// In how many groups the keys of those who are here are counted. (Each may have 65,535, and
/// there is no memory for that many calls in all of them.)
const GROUPS: usize = 1024;

/// Where a control is found: the trace context that its handler was given, which a
/// handler passes on also where its task is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    trace: u128,
    span: u64,
}

impl Key {
    #[inline]
    pub(crate) fn of(ctx: &tarpc::context::Context) -> Self {
        let context = &ctx.trace_context;
        Self { trace: u128::from(context.trace_id), span: u64::from(context.span_id) }
    }

    /// One that no context leads to.
    pub(crate) fn unique(strand: StrandId) -> Self {
        Self { trace: u128::MAX, span: strand.0 }
    }
}

pub(crate) struct Seats {
    of: ProcessIndex,
    roster: Roster<Place<Control>>,
    /// How many are here of each group of keys: most calls are made by nobody who is.
    present: Box<[AtomicU16]>,
}

thread_local! {
    static VACANT: Shelves<Vacant<Control>> = const { RefCell::new(Vec::new()) };
}

impl Kept for Control {
    type Pointer = Vacant<Self>;
    fn shelves() -> &'static LocalKey<Shelves<Vacant<Self>>> {
        &VACANT
    }
}

impl Seats {
    /// Of this process.
    pub(crate) fn new(of: ProcessIndex) -> Self {
        let present = (0..GROUPS).map(|_| AtomicU16::default()).collect();
        Self { of, roster: Roster::new(of), present }
    }

    /// A place for a control that comes into the process.
    #[inline]
    pub(crate) fn vacant(&self) -> Vacant<Control> {
        shelf::take::<Control>(self.of).unwrap_or_else(|| self.another())
    }

    #[cold]
    fn another(&self) -> Vacant<Control> {
        let vacant = Vacant::new(Control::default());
        self.roster.add(vacant.place().clone());
        vacant
    }

    /// It can be taken again.
    #[inline]
    pub(crate) fn keep(&self, vacant: Vacant<Control>) {
        shelf::keep::<Control>(self.of, vacant);
    }

    /// Whoever has this key is here.
    #[inline]
    pub(crate) fn has(&self, key: Key) {
        self.group(key).fetch_add(1, Ordering::SeqCst);
    }

    /// It is here no more.
    #[inline]
    pub(crate) fn has_lost(&self, key: Key) {
        self.group(key).fetch_sub(1, Ordering::SeqCst);
    }

    /// Whoever has this key, if it is here.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<Guest<Control>> {
        match self.group(key).load(Ordering::SeqCst) {
            0 => None,
            _ => self.find_among_all(key),
        }
    }

    #[inline(never)]
    fn find_among_all(&self, key: Key) -> Option<Guest<Control>> {
        self.all().into_iter().find(|control| control.has(key))
    }

    /// All who are here.
    pub(crate) fn all(&self) -> Vec<Guest<Control>> {
        let mut all = Vec::new();
        self.roster.for_each(|place| all.extend(place.visit()));
        all
    }

    #[inline]
    fn group(&self, key: Key) -> &AtomicU16 {
        &self.present[key.span as usize % GROUPS]
    }
}
