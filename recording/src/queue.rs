//! From the program's threads to the one that writes.
//!
//! A push takes a lock for as long as it takes to move a few words, and never
//! waits for the writer: when the queue is full, the entry is dropped and counted.
//! A full queue stays full until it is emptied as a whole, so what was dropped
//! belongs behind all that is in it: that is where the gap goes.
//!
//! Nearly all that comes is a [`Note`] of a control that has begun with a call, which is a few
//! numbers: nothing has to be let go of when it was written. What is not is kept beside them, so
//! that room for it is only there where it is needed.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ddbx_protocol::{Delay, EventKind, EventNumber, ProcessIndex, ProcessName, RealTime};

use crate::entry::{Entry, Moment, Payload};
use crate::note::{Beginning, Happens, Note, Noted, Who};

/// How many entries a queue holds unless told otherwise: those of more than a million a
/// second for a tenth of a second, should whoever empties it be late.
const CAPACITY: usize = 128 * 1024;

/// How much more room there is for names: a process meets few, unless somebody makes them up.
const MET_MAX: usize = 4 * 1024;

/// A bounded queue of entries. All threads of the process share it.
#[derive(Debug)]
pub struct Queue {
    capacity: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    taken: Taken,
    dropped: u64,
    last: EventNumber,
    is_over: bool,
}

/// What has come, in its order.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) lines: Vec<Line>,
    pub(crate) notes: Vec<Noted>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) met: Vec<(ProcessIndex, ProcessName)>,
}

impl Taken {
    /// Forgets all; the room stays.
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
        self.notes.clear();
        self.entries.clear();
        self.met.clear();
    }
}

/// One after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Line {
    /// An event of a call, as nearly all are.
    Usual(Usual),
    /// The next of the other notes, which are kept beside.
    Note,
    /// The next of the entries.
    Entry,
    /// The next process that has a name from now on.
    Met,
}

/// A note of a control that has begun with a call, and makes its calls where it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usual {
    pub(crate) number: EventNumber,
    pub(crate) at: RealTime,
    pub(crate) delay: Delay,
    pub(crate) beginning: Beginning,
    /// Which of its calls.
    pub(crate) nth: u32,
    pub(crate) what: Happens,
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
        let mut waiting = self.lock();
        let number = waiting.next();
        self.add(&mut waiting, Entry::Event(Moment { number, at, delay, kind, payload }));
        number
    }

    /// The same with what happens to a call, unless the log is over: then nothing happens.
    #[inline]
    pub fn note_in_time(
        &self,
        at: RealTime,
        delay: Delay,
        note: impl FnOnce() -> Note,
    ) -> Option<EventNumber> {
        // Not while it is locked: this may wait for somebody.
        let note = note();
        let mut waiting = self.lock();
        if waiting.is_over {
            return None;
        }
        let number = waiting.next();
        if self.has_room(&mut waiting) {
            let taken = &mut waiting.taken;
            match (&note.control, note.path.numbers()) {
                (Who::Begun(beginning), &[nth]) => {
                    let (beginning, what) = (*beginning, note.what);
                    let usual = Usual { number, at, delay, beginning, nth, what };
                    taken.lines.push(Line::Usual(usual));
                }
                _ => {
                    taken.lines.push(Line::Note);
                    taken.notes.push(Noted { number, at, delay, note });
                }
            }
        }
        Some(number)
    }

    /// From now on a process that notes name by its number has this name. That must be known
    /// also where events are dropped, so there is some more room for it.
    pub fn meet(&self, process: ProcessIndex, name: ProcessName) {
        let mut waiting = self.lock();
        if waiting.taken.lines.len() < self.capacity + MET_MAX {
            waiting.taken.lines.push(Line::Met);
            waiting.taken.met.push((process, name));
        }
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
        waiting.taken.lines.is_empty() && waiting.dropped == 0
    }

    /// Moves all to `taken`, which must be empty: the two change places, so that in the long
    /// run nobody allocates. Returns how many were dropped behind them.
    pub(crate) fn take(&self, taken: &mut Taken) -> u64 {
        debug_assert!(taken.lines.is_empty() && taken.entries.is_empty());
        let mut waiting = self.lock();
        mem::swap(&mut waiting.taken, taken);
        mem::take(&mut waiting.dropped)
    }

    fn add(&self, waiting: &mut Waiting, entry: Entry) -> bool {
        let has_room = self.has_room(waiting);
        if has_room {
            waiting.taken.lines.push(Line::Entry);
            waiting.taken.entries.push(entry);
        }
        has_room
    }

    /// Whether there is room for one more, which is counted if there is none.
    #[inline]
    fn has_room(&self, waiting: &mut Waiting) -> bool {
        let has_room = waiting.dropped == 0 && waiting.taken.lines.len() < self.capacity;
        waiting.dropped += u64::from(!has_room);
        has_room
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    #[inline]
    fn next(&mut self) -> EventNumber {
        self.last.0 += 1;
        self.last
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

    use ddbx_protocol::{CallPath, ControlId};

    use super::*;
    use crate::entry::{Gap, Why};
    use crate::note::{Happens, Who};

    fn note(queue: &Queue, control: &ControlId) -> EventNumber {
        let kind = EventKind::Ended { control: control.clone() };
        queue.note(RealTime::default(), Delay::ZERO, kind)
    }

    /// The numbers of what is taken, and how many were dropped behind them.
    fn taken(queue: &Queue) -> (Vec<u64>, u64) {
        let mut taken = Taken::default();
        let dropped = queue.take(&mut taken);
        let mut entries = taken.entries.into_iter();
        let mut notes = taken.notes.into_iter();
        let number = |line| match line {
            Line::Usual(usual) => usual.number.0,
            Line::Note => notes.next().unwrap().number.0,
            Line::Entry => match entries.next() {
                Some(Entry::Event(moment)) => moment.number.0,
                other => panic!("{other:?} is no event"),
            },
            Line::Met => panic!("nobody was met"),
        };
        (taken.lines.into_iter().map(number).collect(), dropped)
    }

    fn note_in_time(queue: &Queue, control: &ControlId) -> Option<EventNumber> {
        queue.note_in_time(RealTime::default(), Delay::ZERO, || Note {
            control: Who::Named(control.clone()),
            path: CallPath::root(1),
            what: Happens::ReturnSent,
        })
    }

    #[test]
    fn what_does_not_fit_is_counted_at_its_place() {
        let (queue, control) = (Queue::new(2), ControlId::new("p/main").unwrap());
        for expected in [1, 2, 3, 4] {
            let number = match expected % 2 {
                0 => note(&queue, &control),
                _ => note_in_time(&queue, &control).unwrap(),
            };
            assert_eq!(number, EventNumber(expected));
        }
        assert!(!queue.push(Entry::Gap(Gap { missing: 1, why: Why::DiskFull })));
        assert_eq!(taken(&queue), (vec![1, 2], 3));
        assert!(queue.is_empty());
        assert_eq!(note_in_time(&queue, &control), Some(EventNumber(5)));
        queue.end();
        assert_eq!(note_in_time(&queue, &control), None);
        assert_eq!(taken(&queue), (vec![5], 0));
    }

    #[test]
    fn names_fit_also_where_events_do_not() {
        let (queue, control) = (Queue::new(1), ControlId::new("p/main").unwrap());
        let name = ProcessName::new("shop").unwrap();
        (0..3).for_each(|_| _ = note(&queue, &control));
        (0..2 * MET_MAX as u64).for_each(|nth| queue.meet(ProcessIndex(nth), name.clone()));
        let mut taken = Taken::default();
        assert_eq!(queue.take(&mut taken), 2);
        assert_eq!(taken.lines.iter().filter(|line| matches!(line, Line::Met)).count(), MET_MAX);
        assert!(taken.met.len() == MET_MAX && taken.met.iter().all(|(_, met)| *met == name));
        assert!(matches!(taken.lines[0], Line::Entry));
    }

    /// Many threads, a small queue and a slow reader: the order is the order of the
    /// numbers, and every number is there or counted, in its place.
    #[test]
    fn threads_agree_on_one_order() {
        const EACH: u64 = 5_000;
        let (queue, control) = (Queue::new(500), ControlId::new("p/main").unwrap());
        let (mut last, mut seen) = (0, 0);
        let mut look = || {
            let (numbers, dropped) = taken(&queue);
            for number in numbers {
                assert_eq!(number, last + 1);
                last += 1;
                seen += 1;
            }
            last += dropped;
            last
        };
        thread::scope(|scope| {
            for nth in 0..4 {
                let (queue, control) = (&queue, &control);
                scope.spawn(move || {
                    (0..EACH).for_each(|event| match (nth + event) % 2 {
                        0 => _ = note(queue, control),
                        _ => _ = note_in_time(queue, control),
                    });
                });
            }
            while look() < 4 * EACH {
                thread::yield_now();
            }
        });
        assert!(queue.is_empty() && seen > 0);
    }
}
