//! Whatever is written is read back.

use ddbx_protocol::{
    CallId, CallPath, ChoiceName, ConnectionId, ControlId, Delay, End, EventId, EventKind,
    EventNumber, MethodName, PointLabel, ProcessName, RealTime, Shared,
};
use ddbx_recording::format::body::{Decoder, Encoder};
use ddbx_recording::format::{HEAD_BYTES, Head, check_block};
use ddbx_recording::{
    Choice, ChoiceValue, Entry, Gap, LogWriter, Moment, Options, Payload, Segment, Tail, Why,
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

/// The call that a control handles, unless it is where it began.
fn within() -> impl Strategy<Value = Option<CallPath>> {
    prop::option::of(path())
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
        (call(), method(), any::<u16>()).prop_map(|(call, method, content)| EventKind::CallSent {
            call,
            method,
            content
        }),
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
        (control(), within(), label).prop_map(|(control, call, label)| EventKind::Point {
            control,
            call,
            label
        }),
        (control(), within(), nearly(1..4)).prop_map(|(control, call, timer)| EventKind::Fired {
            control,
            call,
            timer
        }),
        (control(), within(), nearly(1..4), shared(), perhaps()).prop_map(
            |(control, call, nth, what, from)| EventKind::Entered {
                control,
                call,
                nth,
                what,
                from
            }
        ),
        connection().prop_map(|connection| EventKind::Connected { connection }),
        (connection(), event_id())
            .prop_map(|(connection, sent_as)| EventKind::Accepted { connection, sent_as }),
        connection().prop_map(|connection| EventKind::Closed { connection }),
    ]
}

/// Mostly none, and some that are too long to be kept whole.
fn payload() -> impl Strategy<Value = Option<Box<Payload>>> {
    let text = prop_oneof!["[a-é]{0,40}", "[a-é]{2000,4100}"];
    prop_oneof![3 => Just(None), 1 => text.prop_map(|text| Some(Box::new(Payload::new(&text))))]
}

/// What stands between two gaps.
fn substance() -> impl Strategy<Value = Entry> {
    let event = (nearly(1..5), any::<i64>(), nearly(0..2), kind(), payload()).prop_map(
        |(number, at, delay, kind, payload)| {
            let (at, delay) = (RealTime::from_nanos(at), Delay::from_nanos(delay));
            Entry::Event(Moment { number: EventNumber(number), at, delay, kind, payload })
        },
    );
    let value = prop::collection::vec(any::<u8>(), 0..40);
    let choice = (control(), within(), "[a-c]", value).prop_map(|(control, call, name, value)| {
        let (name, value) = (ChoiceName::new(name).unwrap(), ChoiceValue::new(value).unwrap());
        Entry::Choice(Choice { control, call, name, value })
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

    /// Bytes whose sums fit, but that no writer has written. What is read of them could
    /// have been written.
    #[test]
    fn any_body_is_entries_or_an_error(mut body: Vec<u8>, kinds in prop::collection::vec(0u8..16, 0..8)) {
        for (byte, kind) in body.iter_mut().step_by(5).zip(kinds) {
            *byte = kind;
        }
        let mut decoder = Decoder::default();
        let (mut rest, mut read) = (&body[..], Vec::new());
        while !rest.is_empty() {
            let Ok((entry, used)) = decoder.next(rest) else { break };
            prop_assert!(used > 0);
            rest = &rest[used..];
            read.push(entry);
        }
        let mut encoder = Encoder::default();
        read.iter().for_each(|entry| encoder.push(entry));
        let mut block = Vec::new();
        encoder.close_block(0, &mut block);
        if let Some(head) = block.first_chunk::<HEAD_BYTES>() {
            let head = Head::decode(0, head).unwrap();
            let (mut decoder, mut rest) = (Decoder::default(), check_block(0, &block).unwrap());
            decoder.begin(head.kind, head.first);
            for expected in &read {
                let (found, used) = decoder.next(rest).unwrap();
                prop_assert_eq!(&found, expected);
                rest = &rest[used..];
            }
        }
    }
}

/// The first byte of an entry, as `format/body.rs` has it.
mod tag {
    pub const RETURN_SENT: u8 = 2;
    pub const SPAWNED: u8 = 6;
    pub const POINT: u8 = 8;
    pub const CHOICE: u8 = 12;
    pub const GAP: u8 = 13;
    pub const FIRED: u8 = 14;
    pub const ENTERED: u8 = 15;
    pub const JUMP: u8 = 1 << 4;
    pub const DELAY: u8 = 1 << 5;
    pub const NEXT_CALL: u8 = 1 << 6;
    pub const OTHER_CALL: u8 = 1 << 7;
}

#[test]
fn what_no_writer_writes_is_refused() {
    use tag::*;
    /// Defines a name of one byte.
    const A: [u8; 5] = [0, 0, 0, 1, b'a'];
    let reads = |bytes: &[&[u8]]| Decoder::default().next(&bytes.concat()).is_ok();
    // A time that is the one before, and who.
    let (now, call_1) = (&[0][..], &[0, 1, 1][..]);
    let by_nobody = &[0][..];
    let good: &[&[&[u8]]] = &[
        &[&[RETURN_SENT | OTHER_CALL], now, &A, call_1],
        &[&[POINT], now, &A, &A],
        &[&[FIRED | OTHER_CALL], now, &A, call_1, &[9]],
        &[&[ENTERED], now, &A, &[5, 1], by_nobody],
        &[&[SPAWNED], now, &A, by_nobody],
        &[&[CHOICE | OTHER_CALL], &A, call_1, &A, &[0]],
        &[&[GAP], &[1, 3]],
    ];
    for bytes in good {
        assert!(reads(bytes), "{bytes:?}");
    }
    let too_deep = [&[0, 129, 2][..], &[1; 257]].concat();
    let bad: &[&[&[u8]]] = &[
        // A call has a path.
        &[&[RETURN_SENT], now, &A],
        &[&[RETURN_SENT | OTHER_CALL], now, &A, &[0, 0]],
        // The one after none; two things at once; more of the last one than there is.
        &[&[POINT | NEXT_CALL], now, &A, &A],
        &[&[POINT | NEXT_CALL | OTHER_CALL], now, &A, call_1, &A],
        &[&[POINT | OTHER_CALL], now, &A, &[1, 1, 1], &A],
        &[&[POINT | OTHER_CALL], now, &A, &too_deep, &A],
        // Not about calls; without number and delay; something else that is shared.
        &[&[SPAWNED | OTHER_CALL], now, &A, call_1, by_nobody],
        &[&[CHOICE | JUMP], &[2], &A, &A, &[0]],
        &[&[CHOICE | DELAY], &[2], &A, &A, &[0]],
        &[&[GAP | OTHER_CALL], call_1, &[1, 3]],
        &[&[GAP | JUMP], &[2], &[1, 3]],
        &[&[GAP], &[3, 3]],
        &[&[ENTERED], now, &A, &[6, 1], by_nobody],
    ];
    for bytes in bad {
        assert!(!reads(bytes), "{bytes:?}");
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
            Entry::Event(Moment {
                number: EventNumber(number),
                at: now,
                delay: Delay::ZERO,
                kind,
                payload: None,
            })
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
