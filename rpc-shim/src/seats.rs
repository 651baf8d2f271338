//! The controls that are in a process. Each has a seat, which others take after it: so
//! calls make no room for them and do not wait for each other, and whoever asks who is
//! here looks at all seats.

use std::cell::RefCell;
use std::mem;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::LocalKey;

use ddbx_protocol::ProcessIndex;
use ddbx_satellite::logic::strand::StrandId;
use ddbx_satellite::roster::Roster;
use ddbx_satellite::shelf::{Kept, Shelves};

use crate::control::{Control, Here, Newcomer};

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
    roster: Roster<Seat>,
    /// How many are here of each group of keys: most calls are made by nobody who is.
    present: Box<[AtomicU16]>,
}

/// Where a control is, or its room is kept for the next one.
#[derive(Default)]
pub(crate) struct Seat(Mutex<Seated>);

#[derive(Default)]
struct Seated {
    control: Arc<Control>,
    is_present: bool,
}

thread_local! {
    static SEATS: Shelves<Arc<Seat>> = const { RefCell::new(Vec::new()) };
}

impl Kept for Seat {
    type Pointer = Arc<Self>;
    fn shelves() -> &'static LocalKey<Shelves<Arc<Self>>> {
        &SEATS
    }
}

impl Seats {
    /// Of this process.
    pub(crate) fn new(of: ProcessIndex) -> Self {
        let present = (0..GROUPS).map(|_| AtomicU16::default()).collect();
        Self { roster: Roster::new(of), present }
    }

    /// A seat for a control that comes into the process.
    #[inline]
    pub(crate) fn free(&self) -> Arc<Seat> {
        self.roster.take(Seat::default)
    }

    /// Whoever has this key is here.
    #[inline]
    pub(crate) fn has(&self, key: Key) {
        self.group(key).fetch_add(1, Ordering::SeqCst);
    }

    /// A seat is free again.
    pub(crate) fn give_back(&self, key: Key, seat: Arc<Seat>) {
        self.group(key).fetch_sub(1, Ordering::SeqCst);
        self.roster.give_back(seat);
    }

    /// Whoever has this key, if it is here.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<Arc<Control>> {
        match self.group(key).load(Ordering::SeqCst) {
            0 => None,
            _ => self.find_among_all(key),
        }
    }

    #[inline(never)]
    fn find_among_all(&self, key: Key) -> Option<Arc<Control>> {
        self.all().into_iter().find(|control| control.has(key))
    }

    /// All who are here.
    pub(crate) fn all(&self) -> Vec<Arc<Control>> {
        let mut all = Vec::new();
        self.roster.for_each(|seat| {
            let seated = seat.lock();
            if seated.is_present {
                all.push(seated.control.clone());
            }
        });
        all
    }

    #[inline]
    fn group(&self, key: Key) -> &AtomicU16 {
        &self.present[key.span as usize % GROUPS]
    }
}

impl Seat {
    /// Somebody takes it. From now on that one is seen by whoever looks at all seats; and
    /// whoever has looked before has said why before, so it sees that.
    #[inline(always)]
    pub(crate) fn take(&self, new: Newcomer<'_>) -> Arc<Control> {
        let mut seated = self.lock();
        match Arc::get_mut(&mut seated.control) {
            Some(room) => room.enter(new),
            None => seated.control = Self::another(new),
        }
        seated.is_present = true;
        seated.control.clone()
    }

    /// Whoever has looked at the last one is not done yet.
    #[cold]
    fn another(new: Newcomer<'_>) -> Arc<Control> {
        let mut room = Control::default();
        room.enter(new);
        Arc::new(room)
    }

    /// A control leaves: its room is kept if nobody else still needs what is in it, which
    /// is returned then.
    #[inline]
    pub(crate) fn leave(&self, control: Arc<Control>) -> Result<Here, Arc<Control>> {
        let mut seated = self.lock();
        seated.is_present = false;
        drop(control);
        match Arc::get_mut(&mut seated.control).and_then(Control::leave) {
            Some(here) => Ok(here),
            None => Err(mem::take(&mut seated.control)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seated> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
