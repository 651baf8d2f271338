//! What lies on the disk: logs, manifests, and whole recordings.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::PathBuf;

use ddbx_protocol::{
    CallPath, ChoiceName, ControlId, Delay, EventId, EventKind, EventNumber, MethodName,
    ProcessIndex, ProcessName, RealTime, SessionName,
};
use ddbx_recording::format::body::Encoder;
use ddbx_recording::format::{
    BODY_BYTES_MAX, BlockKind, HEAD_BYTES, Header, SUM_BYTES, encode_block,
};
use ddbx_recording::{
    Beginning, Choice, ChoiceValue, Entry, Gap, Happens, Keep, Moment, NewProcess, Note, Noted,
    Payload, ProcessManifest, Program, Recording, Seal, SealedFile, Segment, SegmentReader, SentAs,
    SessionManifest, Step, Who, Why, decode_manifest, encode_manifest, is_replayable, join, merged,
    verify,
};
use tempfile::TempDir;

use super::{Decoder, messages};

/// A file of a log as it lies there: nearly all that is changed is found by a checksum.
pub(super) const LOG: Decoder = Decoder::new("log", logs, read);

/// The entries of a block, twice: checksums are made to fit.
pub(super) const ENTRIES: Decoder =
    Decoder::new("log_entries", bodies, |body| read(&segment(&[body, body]))).worst(heavy_bodies);

/// A manifest of a session or of a process.
pub(super) const MANIFEST: Decoder = Decoder::new("manifest", manifests, |bytes| {
    decode_manifest::<SessionManifest>(bytes).is_ok()
        | decode_manifest::<ProcessManifest>(bytes).is_ok()
})
.worst(heavy_json);

/// What says that a recording is finished.
pub(super) const SEAL: Decoder =
    Decoder::new("seal", seals, |bytes| decode_manifest::<Seal>(bytes).is_ok()).worst(heavy_json);

/// A recording of two processes, one of which has these entries: read, checked and put in
/// order.
pub(super) const RECORDING: Decoder = Decoder::new("recording", bodies, |body| {
    RUN.with(|run| {
        let log = segment(&[body]);
        let (directory, file) = &**run;
        fs::write(file, log).expect("a file can be written");
        let recording = Recording::open(directory.path()).expect("the manifests are right");
        let _ = format!("{:?}", verify(&recording));
        let _ = is_replayable(&recording).map_err(|why| why.to_string());
        let mut is_read = true;
        for step in merged(&recording) {
            is_read &= !matches!(step, Step::Broken { .. });
            let _ = format!("{step:?}");
        }
        is_read
    })
})
.share(10);

fn process() -> ProcessName {
    ProcessName::new("inventory").expect("a name")
}

fn session() -> SessionManifest {
    let name = SessionName::new("shop").expect("a name");
    SessionManifest::new(name, "2026-01-01T00:00:00Z", Keep::All)
}

thread_local! {
    /// A recording of two processes, and the log of the second.
    static RUN: LazyCell<(TempDir, PathBuf)> = LazyCell::new(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut last = PathBuf::new();
        for name in ["inventory#2", "inventory"] {
            let name = ProcessName::new(name).expect("a name");
            let new = NewProcess { name: name.clone(), pid: 1, command: None };
            let files = join(directory.path(), &session(), new).expect("it can be joined");
            let header = Header { segment: Segment::FIRST, process: name };
            let log = whole(header, &bodies()[..1]);
            last = files.directory().join("000001.log");
            fs::write(&last, log).expect("it can be written");
        }
        (directory, last)
    });
}

fn read(bytes: &[u8]) -> bool {
    let mut reader = SegmentReader::new(bytes, process(), Segment::FIRST);
    loop {
        match reader.read() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// A file with these bodies and an end, as a writer would make it.
fn segment<T: AsRef<[u8]>>(bodies: &[T]) -> Vec<u8> {
    whole(Header { segment: Segment::FIRST, process: process() }, bodies)
}

fn whole<T: AsRef<[u8]>>(header: Header, bodies: &[T]) -> Vec<u8> {
    let mut bytes = header.encode();
    let mut kind = BlockKind::Fresh;
    for body in bodies {
        let body = body.as_ref();
        let body = &body[..body.len().min(BODY_BYTES_MAX)];
        encode_block(bytes.len() as u64, kind, EventNumber(1), body, &mut bytes);
        kind = BlockKind::More;
    }
    encode_block(bytes.len() as u64, BlockKind::End, EventNumber(1), &[], &mut bytes);
    bytes
}

/// An entry of every kind, and an arrival from the other process.
fn entries() -> Vec<Entry> {
    let other = ProcessName::new("inventory#2").expect("a name");
    let call = messages::kinds().iter().find_map(|kind| kind.call().cloned()).expect("a call");
    let sent_as = Some(EventId { process: other, number: EventNumber(2) });
    let arrival = EventKind::ReturnArrived { call, sent_as };
    let moment = |(number, kind)| {
        Entry::Event(Moment {
            number: EventNumber(number),
            at: RealTime::from_nanos(1_000 * number as i64),
            delay: Delay::from_nanos(number / 3),
            kind,
            payload: number.is_multiple_of(2).then(|| Box::new(Payload::new("{\"item\":7}"))),
        })
    };
    let mut entries: Vec<_> = (1..).zip(messages::kinds()).map(moment).collect();
    entries.push(moment((40, arrival)));
    let control = ControlId::root(&process(), "main").expect("a name");
    let name = ChoiceName::new("shelf").expect("a name");
    let value = ChoiceValue::new(vec![1, 2, 3]).expect("not too long");
    let call = Some(CallPath::root(2));
    entries.push(Entry::Choice(Choice { control, call, name, value }));
    entries.extend([Why::QueueFull, Why::DiskFull, Why::DiskError].map(|why| {
        let missing = 4;
        Entry::Gap(Gap { missing, why })
    }));
    entries
}

fn encoded(entries: &[Entry]) -> Vec<u8> {
    let mut encoder = Encoder::default();
    entries.iter().for_each(|entry| encoder.push(entry));
    closed(encoder)
}

fn closed(mut encoder: Encoder) -> Vec<u8> {
    let mut block = Vec::new();
    encoder.close_block(0, &mut block);
    block[HEAD_BYTES..block.len() - SUM_BYTES].to_vec()
}

fn bodies() -> Vec<Vec<u8>> {
    let entries = entries();
    let pairs = entries.windows(2).map(encoded);
    let notes = noted(&MethodName::new("Orders.place").expect("a name"), 3, 4);
    [encoded(&entries), notes].into_iter().chain(pairs).collect()
}

/// So many controls that have begun with calls of this, each with notes of so many kinds.
fn noted(method: &MethodName, controls: u64, kinds: usize) -> Vec<u8> {
    let method: &'static MethodName = Box::leak(Box::new(method.clone()));
    let (mut encoder, home) = (Encoder::default(), ProcessIndex(1));
    encoder.meet(home, &ProcessName::new("p".repeat(128)).expect("a name"));
    let sent_as = SentAs { process: home, number: EventNumber(2) };
    let all = [
        Happens::CallArrived { method, sent_as },
        Happens::CallSent { method, content: 7 },
        Happens::ReturnArrived { sent_as: SentAs::default() },
        Happens::ReturnSent,
    ];
    let control = |nth| Who::Begun(Beginning { home, method, hash: nth, nth: nth as u32 });
    let of = |nth| all[..kinds].iter().map(move |what| (control(nth), *what));
    let notes = (0..controls).flat_map(of);
    for (number, (control, what)) in (1..).zip(notes) {
        let (at, number) = (RealTime::from_nanos(number as i64), EventNumber(number));
        let note = Note { control, path: CallPath::root(1), what };
        encoder.push_note(&Noted { number, at, delay: Delay::ZERO, note });
    }
    closed(encoder)
}

fn logs() -> Vec<Vec<u8>> {
    let bodies = bodies();
    vec![segment(&bodies), segment(&bodies[..1]), segment::<Vec<u8>>(&[])]
}

/// As many names as fit into a block, each a little longer than what it costs.
fn heavy_bodies() -> Vec<Vec<u8>> {
    let spawned = |name: String| {
        let control = ControlId::new(name).expect("a name");
        Entry::Event(Moment {
            number: EventNumber(1),
            at: RealTime::default(),
            delay: Delay::ZERO,
            kind: EventKind::Ended { control },
            payload: None,
        })
    };
    let long = "x".repeat(4_000);
    let many: Vec<_> = (0..8_000).map(|n| spawned(format!("{n:x}"))).collect();
    let alike: Vec<_> = (0..5_000).map(|n| spawned(format!("{long}{n:x}"))).collect();
    let begun = noted(&MethodName::new("m".repeat(256)).expect("a name"), 3_000, 1);
    [encoded(&many), encoded(&alike), begun]
        .map(|mut body| {
            body.truncate(BODY_BYTES_MAX);
            body
        })
        .to_vec()
}

fn manifests() -> Vec<Vec<u8>> {
    let program =
        Program { file: "/shop/ddbx.toml".to_owned(), text: "session = 'x'\n".to_owned() };
    let with_program = SessionManifest { program: Some(program), ..session() };
    let kept = NonZeroU32::new(64).map_or(Keep::All, Keep::LastMib);
    let black_box = SessionManifest { keep: kept, ..session() };
    let command = Some(vec!["shop".to_owned(), "inventory".to_owned()]);
    let process = ProcessManifest { process: process(), start: 1, pid: 4711, command };
    vec![
        encode_manifest(&with_program),
        encode_manifest(&black_box),
        encode_manifest(&process),
        b"{\"format\": 7}".to_vec(),
    ]
}

fn seals() -> Vec<Vec<u8>> {
    let file = SealedFile { bytes: 4_096, crc32: 7 };
    let files = ["session.json", "inventory/000001.log"].map(|name| (name.to_owned(), file));
    let seal = Seal { files: files.into(), exits: BTreeMap::from([(process(), 1)]) };
    vec![encode_manifest(&seal)]
}

/// Nested as deep as a manifest can be long, and as many fields as fit.
fn heavy_json() -> Vec<Vec<u8>> {
    let bytes = 4 << 20;
    let before = "{\"format\": 1, \"manifest\": ";
    let files: String =
        (0..bytes / 40).map(|n| format!("\"{n:x}\":{{\"bytes\":1,\"crc32\":1}},")).collect();
    vec![
        [before, &"[".repeat(bytes)].concat().into_bytes(),
        [before, &"{\"a\":".repeat(bytes / 5)].concat().into_bytes(),
        [before, "{\"files\":{", &files, "\"\":1}}"].concat().into_bytes(),
    ]
}
