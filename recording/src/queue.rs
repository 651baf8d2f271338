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

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{mem, ptr};

use ddbx_protocol::{
    Delay, EventKind, EventNumber, MethodName, ProcessIndex, ProcessName, RealTime,
};

use crate::entry::{Entry, Moment, Payload};
use crate::note::{Beginning, Happens, Noted, SentAs, ToNote, Who};

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
    /// The last number that was given before.
    pub(crate) before: EventNumber,
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

/// One after the other, each where the processor's memory is written at once: to come to one
/// more such place may take longer than all else that is done with a note.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) enum Line {
    /// An event of a call, as nearly all are.
    Usual(Usual),
    /// The next of the other notes, which are kept beside.
    Note,
    /// The next of the entries, an event that was given its number here.
    Event,
    /// The next of the entries, any other.
    Entry,
    /// The next process that has a name from now on.
    Met,
}

const _: () = assert!(size_of::<Line>() == 64, "a line is as long as that of the memory");

/// A note of a control that has begun with a call, and makes its calls where it began. Its number
/// is the next one, and what it says lies as close as it can.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usual {
    pub(crate) at: RealTime,
    pub(crate) delay: Delay,
    home: ProcessIndex,
    /// With which it began, and which is called.
    method: &'static MethodName,
    hash: u64,
    sent_as: SentAs,
    nth_beginning: u32,
    /// Which of its calls.
    nth: u16,
    what: What,
}

/// What happens to a call. Of one that is sent the content takes the place of a number.
#[derive(Clone, Copy, Debug)]
enum What {
    CallSent,
    CallArrived,
    ReturnSent,
    ReturnArrived,
}

impl Usual {
    /// A note, if it is one.
    #[inline]
    fn of(at: RealTime, delay: Delay, note: &ToNote) -> Option<Self> {
        let (beginning, nth, what) = match note {
            ToNote::Usual { beginning, nth, what } => (beginning, *nth, what),
            ToNote::Any(note) => match (&note.control, note.path.numbers()) {
                (Who::Begun(beginning), &[nth]) => (beginning, nth, &note.what),
                _ => return None,
            },
        };
        let Beginning { home, method, hash, nth: nth_beginning } = *beginning;
        let (called, sent_as, what) = match *what {
            Happens::CallSent { method, content } => {
                let number = EventNumber(content.into());
                (method, SentAs { number, ..SentAs::default() }, What::CallSent)
            }
            Happens::CallArrived { method, sent_as } => (method, sent_as, What::CallArrived),
            Happens::ReturnSent => (method, SentAs::default(), What::ReturnSent),
            Happens::ReturnArrived { sent_as } => (method, sent_as, What::ReturnArrived),
        };
        let nth = u16::try_from(nth).ok().filter(|_| ptr::eq(called, method))?;
        Some(Self { at, delay, home, method, hash, sent_as, nth_beginning, nth, what })
    }

    /// With what its control has begun.
    #[inline]
    pub(crate) fn beginning(&self) -> Beginning {
        let Self { home, method, hash, nth_beginning: nth, .. } = *self;
        Beginning { home, method, hash, nth }
    }

    /// Which of the calls of that.
    #[inline]
    pub(crate) fn nth(&self) -> u32 {
        self.nth.into()
    }

    /// What happens to it.
    #[inline]
    pub(crate) fn what(&self) -> Happens {
        let Self { method, sent_as, .. } = *self;
        match self.what {
            What::CallSent => Happens::CallSent { method, content: sent_as.number.0 as u16 },
            What::CallArrived => Happens::CallArrived { method, sent_as },
            What::ReturnSent => Happens::ReturnSent,
            What::ReturnArrived => Happens::ReturnArrived { sent_as },
        }
    }
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
        let entry = Entry::Event(Moment { number, at, delay, kind, payload });
        self.add(&mut waiting, Line::Event, entry);
        number
    }

    /// The same with what happens to a call, unless the log is over: then nothing happens.
    #[inline]
    pub fn note_in_time(
        &self,
        at: RealTime,
        delay: Delay,
        note: impl FnOnce() -> ToNote,
    ) -> Option<EventNumber> {
        // Not while it is locked: this may wait for somebody.
        let note = note();
        let usual = Usual::of(at, delay, &note);
        let mut waiting = self.lock();
        if waiting.is_over {
            return None;
        }
        let number = waiting.next();
        if self.has_room(&mut waiting) {
            let taken = &mut waiting.taken;
            match usual {
                Some(usual) => taken.lines.push(Line::Usual(usual)),
                None => {
                    taken.lines.push(Line::Note);
                    taken.notes.push(Noted { number, at, delay, note: note.into() });
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
        self.add(&mut self.lock(), Line::Entry, entry)
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
        waiting.taken.before = waiting.last;
        mem::take(&mut waiting.dropped)
    }

    fn add(&self, waiting: &mut Waiting, line: Line, entry: Entry) -> bool {
        let has_room = self.has_room(waiting);
        if has_room {
            waiting.taken.lines.push(line);
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
    use std::sync::LazyLock;
    use std::thread;

    use ddbx_protocol::{CallPath, ControlId, MethodName};

    use super::*;
    use crate::entry::{Gap, Why};
    use crate::note::{Happens, Note, Who};

    static BUY: LazyLock<MethodName> = LazyLock::new(|| MethodName::new("Shop.buy").unwrap());
    static ASK: LazyLock<MethodName> = LazyLock::new(|| MethodName::new("Shop.ask").unwrap());

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
        let mut last = taken.before.0;
        let number = |line| {
            last += 1;
            let known = match line {
                Line::Usual(_) => last,
                Line::Note => notes.next().unwrap().number.0,
                Line::Event => match entries.next() {
                    Some(Entry::Event(moment)) => moment.number.0,
                    other => panic!("{other:?} is no event"),
                },
                other => panic!("{other:?} was not put there"),
            };
            assert_eq!(known, last, "they are counted");
            known
        };
        (taken.lines.into_iter().map(number).collect(), dropped)
    }

    /// A note, as nearly all are, or another one.
    fn note_in_time(queue: &Queue, control: Option<&ControlId>) -> Option<EventNumber> {
        let home = ProcessIndex(1);
        let beginning = Beginning { home, method: &BUY, hash: 7, nth: 3 };
        let what = Happens::ReturnSent;
        queue.note_in_time(RealTime::default(), Delay::ZERO, || match control.cloned() {
            None => ToNote::Usual { beginning, nth: 1, what },
            Some(name) => Note { control: Who::Named(name), path: CallPath::root(1), what }.into(),
        })
    }

    /// What is kept of a note is all that it says, or it is kept as it is.
    #[test]
    fn what_is_usual_comes_back_whole() {
        let sent_as = SentAs { process: ProcessIndex(2), number: EventNumber(u64::MAX) };
        let says = [
            (Happens::CallSent { method: &BUY, content: u16::MAX }, true),
            (Happens::CallArrived { method: &BUY, sent_as }, true),
            (Happens::ReturnSent, true),
            (Happens::ReturnArrived { sent_as }, true),
            (Happens::CallSent { method: &ASK, content: 1 }, false),
            (Happens::CallArrived { method: &ASK, sent_as }, false),
        ];
        for (what, is_usual) in says {
            let (at, delay) = (RealTime::from_nanos(5), Delay::from_nanos(6));
            let beginning = Beginning {
                home: ProcessIndex(u64::MAX),
                method: &BUY,
                hash: u64::MAX,
                nth: u32::MAX,
            };
            let root = |nth| ToNote::Usual { beginning, nth, what };
            let usual = Usual::of(at, delay, &root(65_535));
            assert_eq!(usual.is_some(), is_usual, "{what:?}");
            assert!(Usual::of(at, delay, &root(65_536)).is_none());
            let any = ToNote::Any(root(65_535).into());
            assert_eq!(format!("{:?}", Usual::of(at, delay, &any)), format!("{usual:?}"));
            if let Some(usual) = usual {
                assert_eq!((usual.at, usual.delay, usual.nth()), (at, delay, 65_535));
                assert_eq!(format!("{:?}", usual.beginning()), format!("{beginning:?}"));
                assert_eq!(format!("{:?}", usual.what()), format!("{what:?}"));
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_counted_at_its_place() {
        let (queue, control) = (Queue::new(2), ControlId::new("p/main").unwrap());
        for expected in [1, 2, 3, 4] {
            let number = match expected % 2 {
                0 => note(&queue, &control),
                _ => note_in_time(&queue, Some(&control)).unwrap(),
            };
            assert_eq!(number, EventNumber(expected));
        }
        assert!(!queue.push(Entry::Gap(Gap { missing: 1, why: Why::DiskFull })));
        assert_eq!(taken(&queue), (vec![1, 2], 3));
        assert!(queue.is_empty());
        assert_eq!(note_in_time(&queue, None), Some(EventNumber(5)));
        queue.end();
        assert_eq!(note_in_time(&queue, None), None);
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
        assert!(matches!(taken.lines[0], Line::Event));
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
                    (0..EACH).for_each(|event| match (nth + event) % 3 {
                        0 => _ = note(queue, control),
                        1 => _ = note_in_time(queue, Some(control)),
                        _ => _ = note_in_time(queue, None),
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
