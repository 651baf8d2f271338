//! What happens in the process: always numbered, kept only while somebody looks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use ddbx_protocol::{Delay, Event, EventId, EventKind, EventNumber};

use super::Handle;

/// How many events wait to be sent at the most.
const WAITING_MAX: usize = 8 * 1024;

#[derive(Default)]
pub(super) struct Events {
    last: AtomicU64,
    observed: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    events: Vec<Event>,
    dropped: u64,
}

impl Events {
    pub(super) fn is_observed(&self) -> bool {
        self.observed.load(Ordering::Relaxed)
    }

    pub(super) fn observe(&self, observed: bool) {
        self.observed.store(observed, Ordering::Relaxed);
    }

    /// What has happened since it was last asked for, if anything.
    pub(super) fn take(&self) -> Option<(Vec<Event>, u64)> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Waiting { events, dropped } = std::mem::take(&mut *waiting);
        (!events.is_empty()).then_some((events, dropped))
    }
}

impl Handle {
    /// Something happens, with this delay: its number in the process.
    pub fn note(&self, delay: Delay, kind: impl FnOnce() -> EventKind) -> EventNumber {
        let events = &self.0.events;
        let number = EventNumber(events.last.fetch_add(1, Ordering::Relaxed) + 1);
        if events.is_observed() {
            let id = EventId { process: self.name(), number };
            let event = Event { id, at: self.now(), delay, kind: kind() };
            let mut waiting = events.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            match waiting.events.len() < WAITING_MAX {
                true => waiting.events.push(event),
                false => waiting.dropped += 1,
            }
        }
        number
    }
}
