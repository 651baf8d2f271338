//! A note is written as the event that it is in full.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ddbx_protocol::{
    CallPath, ControlId, Delay, EventKind, EventNumber, MethodName, ProcessIndex, ProcessName,
    RealTime,
};
use ddbx_recording::format::body::{Decoder, Encoder};
use ddbx_recording::format::{BlockKind, check_block};
use ddbx_recording::{
    Beginning, Entry, Happens, LogWriter, Moment, Note, Noted, Options, Queue, Segment, SentAs,
    Tail, Who,
};
use proptest::prelude::*;

use crate::memory::{Memory, read};

static METHODS: LazyLock<[MethodName; 3]> =
    LazyLock::new(|| ["Shop.buy", "Shop.ask", "é.é"].map(|name| MethodName::new(name).unwrap()));

/// What comes into a queue.
#[derive(Clone, Debug)]
enum Comes {
    Note(Note),
    Full(EventKind),
    Met(ProcessIndex, ProcessName),
}

fn index() -> impl Strategy<Value = ProcessIndex> {
    prop_oneof![3 => (1u64..4).prop_map(ProcessIndex), 1 => any::<u64>().prop_map(ProcessIndex)]
}

fn name() -> impl Strategy<Value = ProcessName> {
    "[a-c](#2)?".prop_map(|name| ProcessName::new(name).unwrap())
}

fn method() -> impl Strategy<Value = &'static MethodName> {
    (0..METHODS.len()).prop_map(|nth| &METHODS[nth])
}

fn beginning() -> impl Strategy<Value = Beginning> {
    let hash = prop_oneof![5 => 0u64..4, 1 => any::<u64>()];
    let nth = prop_oneof![5 => 0u32..4, 1 => any::<u32>()];
    (index(), method(), hash, nth).prop_map(|(home, method, hash, nth)| Beginning {
        home,
        method,
        hash,
        nth,
    })
}

/// Some have the name of one that has begun with a call.
fn control() -> impl Strategy<Value = ControlId> {
    let begun = (name(), beginning()).prop_map(|(name, beginning)| beginning.id(|_| name));
    let other = "[ab]/(main|main/x)".prop_map(|name| ControlId::new(name).unwrap());
    prop_oneof![begun, other]
}

fn note() -> impl Strategy<Value = Note> {
    let control = prop_oneof![
        3 => beginning().prop_map(Who::Begun),
        1 => control().prop_map(Who::Named),
    ];
    let path = prop::collection::vec(0u32..4, 1..6);
    let sent_as = || {
        (index(), 0u64..9)
            .prop_map(|(process, number)| SentAs { process, number: EventNumber(number) })
    };
    let what = prop_oneof![
        (method(), any::<u16>())
            .prop_map(|(method, content)| Happens::CallSent { method, content }),
        (method(), sent_as())
            .prop_map(|(method, sent_as)| Happens::CallArrived { method, sent_as }),
        Just(Happens::ReturnSent),
        sent_as().prop_map(|sent_as| Happens::ReturnArrived { sent_as }),
    ];
    (control, path, what).prop_map(|(control, path, what)| Note {
        control,
        path: CallPath::new(&path).unwrap(),
        what,
    })
}

fn comes() -> impl Strategy<Value = Comes> {
    let full = prop_oneof![
        control().prop_map(|control| EventKind::Ended { control }),
        (control(), control())
            .prop_map(|(control, by)| EventKind::Spawned { control, by: Some(by) }),
    ];
    prop_oneof![
        6 => note().prop_map(Comes::Note),
        3 => full.prop_map(Comes::Full),
        1 => (index(), name()).prop_map(|(index, name)| Comes::Met(index, name)),
    ]
}

fn entry(number: EventNumber, kind: EventKind) -> Entry {
    let (at, delay) = (RealTime::from_nanos(number.0 as i64), Delay::ZERO);
    Entry::Event(Moment { number, at, delay, kind, payload: None })
}

/// What is to be read, if nothing is lost.
fn in_full(all: &[Comes]) -> Vec<Entry> {
    let (mut names, mut number) = (BTreeMap::new(), EventNumber(0));
    let mut entries = Vec::new();
    for comes in all {
        number.0 += u64::from(!matches!(comes, Comes::Met(..)));
        match comes {
            Comes::Met(process, name) => _ = names.insert(*process, name.clone()),
            Comes::Full(kind) => entries.push(entry(number, kind.clone())),
            Comes::Note(note) => {
                let name = |process: ProcessIndex| {
                    let unknown = || ProcessName::new(process.to_string()).unwrap();
                    names.get(&process).cloned().unwrap_or_else(unknown)
                };
                let (at, delay) = (RealTime::from_nanos(number.0 as i64), Delay::ZERO);
                let noted = Noted { number, at, delay, note: note.clone() };
                entries.push(Entry::Event(noted.in_full(name)));
            }
        }
    }
    entries
}

fn written(all: &[(Comes, bool)]) -> Vec<u8> {
    let (memory, here) = (Memory::default(), ProcessName::new("here").unwrap());
    let mut writer = LogWriter::new(memory.clone(), &here, Options::default());
    let (queue, mut at) = (Queue::default(), 0);
    for (comes, is_drained) in all {
        at += i64::from(!matches!(comes, Comes::Met(..)));
        let (now, delay) = (RealTime::from_nanos(at), Delay::ZERO);
        match comes {
            Comes::Note(note) => _ = queue.note_in_time(now, delay, || note.clone().into()),
            Comes::Full(kind) => _ = queue.note(now, delay, kind.clone()),
            Comes::Met(process, name) => queue.meet(*process, name.clone()),
        }
        if *is_drained {
            writer.drain(now, &queue);
            writer.flush(now);
        }
    }
    writer.drain(RealTime::default(), &queue);
    writer.close(RealTime::default()).unwrap();
    memory.bytes()
}

fn is_read(all: &[(Comes, bool)]) {
    let here = ProcessName::new("here").unwrap();
    let contents = read(&written(all), &here, Segment::FIRST);
    assert_eq!(contents.end.unwrap(), Tail::Closed);
    let all: Vec<_> = all.iter().map(|(comes, _)| comes.clone()).collect();
    let found: Vec<_> = contents.entries.into_iter().map(|(_, entry)| entry).collect();
    assert_eq!(found, in_full(&all));
}

proptest! {
    #[test]
    fn notes_and_entries_in_any_order(all in prop::collection::vec((comes(), any::<bool>()), 1..80)) {
        is_read(&all);
    }
}

fn begins(hash: u64, nth: u32, what: Happens) -> (Comes, bool) {
    let begun = Beginning { home: ProcessIndex(1), method: &METHODS[0], hash, nth };
    let note = Note { control: Who::Begun(begun), path: CallPath::root(1), what };
    (Comes::Note(note), false)
}

/// All that can be long is as long as can be.
#[test]
fn the_longest_note() {
    let begun =
        Beginning { home: ProcessIndex(1), method: &METHODS[0], hash: u64::MAX, nth: u32::MAX };
    let sent_as = |number| SentAs { process: ProcessIndex(1), number: EventNumber(number) };
    let note = |control, number| Note {
        control,
        path: CallPath::root(1),
        what: Happens::CallArrived { method: &METHODS[0], sent_as: sent_as(number) },
    };
    // By the first one, processes and methods are known.
    let first = note(Who::Begun(Beginning { nth: 1, ..begun }), 1);
    let far = 1 << 63;
    let longest = note(Who::Begun(begun), far + 1);
    let noted = |number, at, delay, note| Noted {
        number: EventNumber(number),
        at: RealTime::from_nanos(at),
        delay: Delay::from_nanos(delay),
        note,
    };
    let all = [noted(1, 0, 0, first), noted(far + 1, i64::MIN, far, longest)];
    let (mut encoder, mut block) = (Encoder::default(), Vec::new());
    all.iter().for_each(|noted| encoder.push_note(noted));
    encoder.close_block(0, &mut block);
    let (mut decoder, mut body) = (Decoder::default(), check_block(0, &block).unwrap());
    decoder.begin(BlockKind::Fresh, EventNumber(1));
    for noted in all {
        let (found, used) = decoder.next(body).unwrap();
        assert_eq!(found, Entry::Event(noted.in_full(|_| ProcessName::new("p1").unwrap())));
        body = &body[used..];
    }
    assert!(body.is_empty());
}

/// More controls than a table of names holds, and than are remembered.
#[test]
fn beginnings_without_end() {
    let sent = Happens::CallSent { method: &METHODS[0], content: 7 };
    let all: Vec<_> = (0..70_000u64)
        .map(|nth| begins(nth.wrapping_mul(0x9e37_79b9_7f4a_7c15), 1, sent))
        .collect();
    is_read(&all);
}

/// A control is defined once, whether it is named in a note or in full; its first call is what
/// is expected of it.
#[test]
fn a_control_is_defined_once_in_few_bytes() {
    let name = ProcessName::new("shop").unwrap();
    let met = (Comes::Met(ProcessIndex(1), name.clone()), false);
    let arrives = Happens::CallArrived { method: &METHODS[0], sent_as: SentAs::default() };
    let ended = |nth| {
        let control = ControlId::of_call(&name, &METHODS[0], 5, nth);
        (Comes::Full(EventKind::Ended { control }), false)
    };
    let notes = [met.clone(), begins(5, 1, arrives), begins(5, 1, Happens::ReturnSent)];
    is_read(&notes);
    let both = [met, begins(5, 1, arrives), ended(1), begins(5, 1, Happens::ReturnSent)];
    is_read(&both);
    let [notes, both, all] = [&notes[..], &both, &[&both[..], &[begins(5, 2, arrives)]].concat()]
        .map(|all| written(all).len());
    // A kind, a time, and who.
    assert_eq!(both - notes, 3);
    // A kind, a time, who (that it is new, what it is made of), the method, and no departure.
    assert_eq!(all - both, 2 + (2 + 2 + 8 + 1) + 2);
}
