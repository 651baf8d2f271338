//! From the program's threads to the one that writes.
//!
//! A push takes a lock for as long as it takes to move a few words, and never
//! waits for the writer: when the queue is full, the entry is dropped and counted.
//! A full queue stays full until it is emptied as a whole, so what was dropped
//! belongs behind all that is in it: that is where the gap goes.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ddbx_protocol::{Delay, EventKind, EventNumber, RealTime};

use crate::entry::{Entry, Gap, Moment, Payload, Why};

/// How many entries a queue holds unless told otherwise: those of more than a million a
/// second for a tenth of a second, should whoever empties it be late.
const CAPACITY: usize = 128 * 1024;

/// A bounded queue of entries. All threads of the process share it.
#[derive(Debug)]
pub struct Queue {
    capacity: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    entries: Vec<Entry>,
    dropped: u64,
    last: EventNumber,
    is_over: bool,
}

impl Queue {
    /// A queue for so many entries.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, waiting: Mutex::default() }
    }

    /// Gives an event the next number of the process and adds it. Number and place
    /// are given under one lock: that is what makes the order of a log the order of
    /// its numbers. Dropped events have numbers too.
    pub fn note(&self, at: RealTime, delay: Delay, kind: EventKind) -> EventNumber {
        self.note_with(at, delay, kind, None)
    }

    /// The same, and with it what was said.
    pub fn note_with(
        &self,
        at: RealTime,
        delay: Delay,
        kind: EventKind,
        payload: Option<Box<Payload>>,
    ) -> EventNumber {
        self.next(&mut self.lock(), |number| Moment { number, at, delay, kind, payload })
    }

    /// The same, unless the log is over: then nothing happens.
    pub fn note_in_time(&self, at: RealTime, delay: Delay, kind: EventKind) -> Option<EventNumber> {
        let mut waiting = self.lock();
        let event = |number| Moment { number, at, delay, kind, payload: None };
        (!waiting.is_over).then(|| self.next(&mut waiting, event))
    }

    /// It is emptied once more, and then the log is over.
    pub fn end(&self) {
        self.lock().is_over = true;
    }

    /// Adds an entry that needs no number, or has one. False if there was no room.
    pub fn push(&self, entry: Entry) -> bool {
        self.add(&mut self.lock(), entry)
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        let waiting = self.lock();
        waiting.entries.is_empty() && waiting.dropped == 0
    }

    /// Moves all entries to `taken`, which must be empty: the two change places, so
    /// that in the long run nobody allocates.
    pub(crate) fn take(&self, taken: &mut Vec<Entry>) {
        debug_assert!(taken.is_empty());
        let mut waiting = self.lock();
        mem::swap(&mut waiting.entries, taken);
        let missing = mem::take(&mut waiting.dropped);
        drop(waiting);
        if missing > 0 {
            taken.push(Entry::Gap(Gap { missing, why: Why::QueueFull }));
        }
    }

    fn next(
        &self,
        waiting: &mut Waiting,
        event: impl FnOnce(EventNumber) -> Moment,
    ) -> EventNumber {
        waiting.last.0 += 1;
        let number = waiting.last;
        self.add(waiting, Entry::Event(event(number)));
        number
    }

    fn add(&self, waiting: &mut Waiting, entry: Entry) -> bool {
        let has_room = waiting.dropped == 0 && waiting.entries.len() < self.capacity;
        match has_room {
            true => waiting.entries.push(entry),
            false => waiting.dropped += 1,
        }
        has_room
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::new(CAPACITY)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use ddbx_protocol::ControlId;

    use super::*;

    fn note(queue: &Queue, control: &ControlId) -> EventNumber {
        let kind = EventKind::Ended { control: control.clone() };
        queue.note(RealTime::default(), Delay::ZERO, kind)
    }

    fn number_of(entry: &Entry) -> Option<u64> {
        match entry {
            Entry::Event(moment) => Some(moment.number.0),
            Entry::Choice(_) | Entry::Gap(_) => None,
        }
    }

    #[test]
    fn what_does_not_fit_is_counted_at_its_place() {
        let (queue, control) = (Queue::new(2), ControlId::new("p/main").unwrap());
        let mut taken = Vec::new();
        for expected in [1, 2, 3, 4] {
            assert_eq!(note(&queue, &control), EventNumber(expected));
        }
        queue.take(&mut taken);
        assert_eq!(taken.iter().filter_map(number_of).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(taken[2], Entry::Gap(Gap { missing: 2, why: Why::QueueFull }));
        taken.clear();
        assert!(queue.is_empty());
        let in_time = || {
            let kind = EventKind::Ended { control: control.clone() };
            queue.note_in_time(RealTime::default(), Delay::ZERO, kind)
        };
        assert_eq!(in_time(), Some(EventNumber(5)));
        queue.end();
        assert_eq!(in_time(), None);
        queue.take(&mut taken);
        assert_eq!(taken.iter().filter_map(number_of).collect::<Vec<_>>(), [5]);
    }

    /// Many threads, a small queue and a slow reader: the order is the order of the
    /// numbers, and every number is there or counted, in its place.
    #[test]
    fn threads_agree_on_one_order() {
        const EACH: u64 = 5_000;
        let (queue, control) = (Queue::new(500), ControlId::new("p/main").unwrap());
        let mut last = 0;
        let mut seen = 0;
        let mut look = |taken: &mut Vec<Entry>| {
            for entry in taken.drain(..) {
                match entry {
                    Entry::Event(moment) => {
                        assert_eq!(moment.number.0, last + 1);
                        last += 1;
                        seen += 1;
                    }
                    Entry::Gap(gap) => last += gap.missing,
                    Entry::Choice(_) => panic!("nobody chose"),
                }
            }
            last
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..EACH).for_each(|_| _ = note(&queue, &control)));
            }
            let mut taken = Vec::new();
            while look(&mut taken) < 4 * EACH {
                queue.take(&mut taken);
                thread::yield_now();
            }
        });
        assert!(queue.is_empty() && seen > 0);
    }
}
