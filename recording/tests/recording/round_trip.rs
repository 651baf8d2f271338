//! Whatever is written is read back.

use ddbx_protocol::{
    CallId, CallPath, ChoiceName, ConnectionId, ControlId, Delay, End, EventId, EventKind,
    EventNumber, MethodName, PointLabel, ProcessName, RealTime, Shared,
};
use ddbx_recording::format::body::{Decoder, Encoder};
use ddbx_recording::format::{HEAD_BYTES, Head, check_block};
use ddbx_recording::{
    Choice, ChoiceValue, Entry, Gap, LogWriter, Moment, Options, Segment, Tail, Why,
};
use proptest::prelude::*;

use crate::memory::{Memory, read};

fn process() -> impl Strategy<Value = ProcessName> {
    "[a-cé]{1,3}(#[1-9])?".prop_map(|name| ProcessName::new(name).unwrap())
}

fn control() -> impl Strategy<Value = ControlId> {
    let long = ("[a-c]/[x-z]", 4000..4094usize).prop_map(|(name, more)| name + &"x".repeat(more));
    prop_oneof![9 => "[a-c]/(main|é[a-d])(/x){0,2}", 1 => long]
        .prop_map(|name| ControlId::new(name).unwrap())
}

/// Mostly the next one, sometimes any.
fn nearly(usual: std::ops::Range<u64>) -> impl Strategy<Value = u64> {
    prop_oneof![5 => usual, 1 => any::<u64>()]
}

fn event_id() -> impl Strategy<Value = EventId> {
    (process(), nearly(1..100))
        .prop_map(|(process, number)| EventId { process, number: EventNumber(number) })
}

/// Short paths that have much in common, and some as long as can be.
fn path() -> impl Strategy<Value = CallPath> {
    let number = || prop_oneof![5 => 1u32..4, 1 => any::<u32>()];
    let deep = (number(), CallPath::DEPTH_MAX - 1..=CallPath::DEPTH_MAX);
    prop_oneof![
        9 => prop::collection::vec(number(), 1..5),
        1 => deep.prop_map(|(number, depth)| vec![number; depth]),
    ]
    .prop_map(|numbers| CallPath::new(&numbers).unwrap())
}

fn shared() -> impl Strategy<Value = Shared> {
    prop_oneof![
        Just(Shared::Lock),
        Just(Shared::Read),
        Just(Shared::Write),
        Just(Shared::Permit),
        Just(Shared::Notice),
        Just(Shared::Message),
    ]
}

fn kind() -> impl Strategy<Value = EventKind> {
    let call = || (control(), path()).prop_map(|(control, path)| CallId { control, path });
    let method = || "[A-C]\\.[a-c]".prop_map(|name| MethodName::new(name).unwrap());
    let label = "[a-c]{1,2}".prop_map(|name| PointLabel::new(name).unwrap());
    let connection =
        || (process(), any::<u32>()).prop_map(|(client, nth)| ConnectionId { client, nth });
    let sent = || prop::option::of(event_id());
    let perhaps = || prop::option::of(control());
    let end = || prop_oneof![Just(End::Caller), Just(End::Callee)];
    prop_oneof![
        (call(), method()).prop_map(|(call, method)| EventKind::CallSent { call, method }),
        (call(), method(), sent()).prop_map(|(call, method, sent_as)| EventKind::CallArrived {
            call,
            method,
            sent_as
        }),
        call().prop_map(|call| EventKind::ReturnSent { call }),
        (call(), sent()).prop_map(|(call, sent_as)| EventKind::ReturnArrived { call, sent_as }),
        (call(), end()).prop_map(|(call, end)| EventKind::DeadlineExpired { call, end }),
        (call(), end()).prop_map(|(call, end)| EventKind::Cancelled { call, end }),
        (control(), perhaps()).prop_map(|(control, by)| EventKind::Spawned { control, by }),
        control().prop_map(|control| EventKind::Ended { control }),
        (control(), label).prop_map(|(control, label)| EventKind::Point { control, label }),
        (control(), nearly(1..4)).prop_map(|(control, timer)| EventKind::Fired { control, timer }),
        (control(), nearly(1..4), shared(), perhaps())
            .prop_map(|(control, nth, what, from)| EventKind::Entered { control, nth, what, from }),
        connection().prop_map(|connection| EventKind::Connected { connection }),
        (connection(), event_id())
            .prop_map(|(connection, sent_as)| EventKind::Accepted { connection, sent_as }),
        connection().prop_map(|connection| EventKind::Closed { connection }),
    ]
}

/// What stands between two gaps.
fn substance() -> impl Strategy<Value = Entry> {
    let event =
        (nearly(1..5), any::<i64>(), nearly(0..2), kind()).prop_map(|(number, at, delay, kind)| {
            let (at, delay) = (RealTime::from_nanos(at), Delay::from_nanos(delay));
            Entry::Event(Moment { number: EventNumber(number), at, delay, kind })
        });
    let value = prop::collection::vec(any::<u8>(), 0..40);
    let choice = (control(), "[a-c]", value).prop_map(|(control, name, value)| {
        let (name, value) = (ChoiceName::new(name).unwrap(), ChoiceValue::new(value).unwrap());
        Entry::Choice(Choice { control, name, value })
    });
    prop_oneof![8 => event, 1 => choice]
}

fn entry() -> impl Strategy<Value = Entry> {
    let why = prop_oneof![Just(Why::QueueFull), Just(Why::DiskFull), Just(Why::DiskError)];
    let gap = (any::<u64>(), why).prop_map(|(missing, why)| Entry::Gap(Gap { missing, why }));
    prop_oneof![9 => substance(), 1 => gap]
}

/// What is done after an entry: nothing, close the block, or close it and start anew.
fn then() -> impl Strategy<Value = u8> {
    prop_oneof![6 => Just(0u8), 2 => Just(1), 1 => Just(2)]
}

proptest! {
    #[test]
    fn any_entries_in_any_blocks(entries in prop::collection::vec((entry(), then()), 1..60), at: u32) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        let mut open = Vec::new();
        for (index, (entry, then)) in entries.iter().enumerate() {
            encoder.push(entry);
            open.push(entry);
            if *then == 0 && index + 1 < entries.len() {
                continue;
            }
            let mut block = Vec::new();
            encoder.close_block(u64::from(at), &mut block);
            if *then == 2 {
                encoder.restart();
            }
            let head = Head::decode(u64::from(at), block.first_chunk::<HEAD_BYTES>().unwrap()).unwrap();
            prop_assert_eq!(head.block_bytes(), block.len());
            decoder.begin(head.kind, head.first);
            let mut body = check_block(u64::from(at), &block).unwrap();
            prop_assert!(check_block(u64::from(at) + 1, &block).is_err(), "a block has its place");
            for expected in open.drain(..) {
                let (found, used) = decoder.next(body).unwrap();
                prop_assert_eq!(&found, expected);
                body = &body[used..];
            }
            prop_assert!(body.is_empty());
        }
    }

    #[test]
    fn through_a_writer(entries in prop::collection::vec((substance(), any::<bool>()), 0..60), gulp in 1usize..200) {
        let memory = Memory::default().gulping(gulp);
        let here = ProcessName::new("here").unwrap();
        let mut writer = LogWriter::new(memory.clone(), &here, Options::default());
        let now = RealTime::default();
        for (entry, flush) in &entries {
            writer.append(now, entry);
            if *flush {
                writer.flush(now);
            }
        }
        writer.close(now).unwrap();
        let contents = read(&memory.bytes(), &here, Segment::FIRST);
        prop_assert_eq!(contents.end.unwrap(), Tail::Closed);
        prop_assert!(contents.entries.iter().map(|(_, entry)| entry).eq(entries.iter().map(|(entry, _)| entry)));
    }

    /// Bytes whose sums fit, but that no writer has written.
    #[test]
    fn any_body_is_entries_or_an_error(mut body: Vec<u8>, kinds in prop::collection::vec(0u8..16, 0..8)) {
        for (byte, kind) in body.iter_mut().step_by(5).zip(kinds) {
            *byte = kind;
        }
        let mut decoder = Decoder::default();
        let mut rest = &body[..];
        while !rest.is_empty() {
            let Ok((_, used)) = decoder.next(rest) else { break };
            prop_assert!(used > 0);
            rest = &rest[used..];
        }
    }
}

/// More controls than a table of names holds: it starts anew, and nobody notices.
#[test]
fn names_without_end() {
    let (memory, here) = (Memory::default(), ProcessName::new("here").unwrap());
    let mut writer = LogWriter::new(memory.clone(), &here, Options::default());
    let now = RealTime::default();
    let entries: Vec<_> = (1..=70_000u64)
        .map(|number| {
            let control = ControlId::new(format!("here/request-{number}")).unwrap();
            let kind = EventKind::Ended { control };
            Entry::Event(Moment { number: EventNumber(number), at: now, delay: Delay::ZERO, kind })
        })
        .collect();
    for entry in &entries {
        writer.append(now, entry);
        writer.poll(now);
    }
    writer.close(now).unwrap();
    let contents = read(&memory.bytes(), &here, Segment::FIRST);
    assert_eq!(contents.end.unwrap(), Tail::Closed);
    assert!(contents.entries.iter().map(|(_, entry)| entry).eq(&entries));
}
