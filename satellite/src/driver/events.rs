//! What happens in the process: always numbered, kept only while somebody looks or it
//! is recorded.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ddbx_protocol::attach::EVENTS_MAX;
use ddbx_protocol::{Delay, Event, EventId, EventKind, EventNumber, ProcessName, RealTime};
use ddbx_recording::Payload;

use super::Handle;

/// How many events wait to be sent at the most.
const WAITING_MAX: usize = 8 * 1024;

#[derive(Default)]
pub(super) struct Events {
    last: AtomicU64,
    observed: AtomicBool,
    /// Whether the way to central is busy: what it cannot take is not put before it.
    is_blocked: AtomicBool,
    dropped: AtomicU64,
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

    pub(super) fn block(&self, is_blocked: bool) {
        self.is_blocked.store(is_blocked, Ordering::Relaxed);
    }

    /// How many there was no room for so far.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// What has happened since it was last asked for, in pieces that fit into a message,
    /// and with the last of them how much there was no room for.
    pub(super) fn take(&self) -> Vec<(Vec<Event>, u64)> {
        if self.is_blocked.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let Waiting { mut events, dropped } = std::mem::take(&mut *self.lock());
        self.dropped.fetch_add(dropped, Ordering::Relaxed);
        let mut pieces = Vec::new();
        while !events.is_empty() {
            let later = events.split_off(events.len().min(EVENTS_MAX));
            let piece = std::mem::replace(&mut events, later);
            pieces.push((piece, if events.is_empty() { dropped } else { 0 }));
        }
        pieces
    }

    pub(super) fn push(
        &self,
        process: ProcessName,
        number: EventNumber,
        at: RealTime,
        delay: Delay,
        kind: EventKind,
    ) {
        self.lock().push(Event { id: EventId { process, number }, at, delay, kind });
    }

    fn next(&self) -> EventNumber {
        EventNumber(self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn push(&mut self, event: Event) {
        match self.events.len() < WAITING_MAX {
            true => self.events.push(event),
            false => self.dropped += 1,
        }
    }
}

impl Handle {
    /// Something happens, with this delay: its number in the process.
    #[inline]
    pub fn note(&self, delay: Delay, kind: impl FnOnce() -> EventKind) -> EventNumber {
        self.note_with(delay, None, kind)
    }

    /// The same, with what was said if that is recorded.
    pub(super) fn note_with(
        &self,
        delay: Delay,
        payload: Option<Box<Payload>>,
        kind: impl FnOnce() -> EventKind,
    ) -> EventNumber {
        let events = &self.0.events;
        if !events.is_observed() && !self.has_course() {
            return events.next();
        }
        if let Some(replay) = self.replay() {
            let kind = kind();
            let number = replay.happens_at_once(&kind);
            self.keep_numbered(number, delay, kind);
            return number;
        }
        match (self.recorder(), events.is_observed()) {
            (None, false) => events.next(),
            (None, true) => {
                let (process, kind, at) = (self.name(), kind(), self.now());
                // Numbers are in the order in which they are sent.
                let mut waiting = events.lock();
                let number = events.next();
                let id = EventId { process, number };
                waiting.push(Event { id, at, delay, kind });
                number
            }
            (Some(recorder), false) => recorder.note(self.now(), delay, kind(), payload),
            (Some(recorder), true) => {
                let (kind, at) = (kind(), self.now());
                let number = recorder.note(at, delay, kind.clone(), payload);
                events.push(self.name(), number, at, delay, kind);
                number
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ddbx_protocol::ControlId;

    use super::*;

    #[test]
    fn while_the_way_is_busy_events_wait_and_what_is_too_much_is_counted() {
        let events = Events::default();
        let process = ProcessName::new("p").unwrap();
        let kind = EventKind::Ended { control: ControlId::new("p/main").unwrap() };
        events.block(true);
        for _ in 0..WAITING_MAX + 5 {
            let number = events.next();
            events.push(process.clone(), number, RealTime::default(), Delay::ZERO, kind.clone());
        }
        assert!(events.take().is_empty());
        events.block(false);
        let pieces = events.take();
        assert!(pieces.iter().all(|(events, _)| events.len() <= EVENTS_MAX));
        let number: usize = pieces.iter().map(|(events, _)| events.len()).sum();
        let dropped: u64 = pieces.iter().map(|(_, dropped)| dropped).sum();
        assert_eq!((number, dropped, events.dropped()), (WAITING_MAX, 5, 5));
    }
}
