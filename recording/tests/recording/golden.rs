//! A recording of each version of the format, kept for ever: what was recorded once
//! can be read, and what is written now is what this version means.
//!
//! When the format changes, change its version, and run this with DDBX_BLESS=1.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{env, fs};

use ddbx_protocol::{
    CallId, CallPath, ChoiceName, ConnectionId, ControlId, Delay, End, EventId, EventKind,
    EventNumber, MethodName, PointLabel, ProcessIndex, ProcessName, RealTime, SessionName, Shared,
};
use ddbx_recording::format::VERSION;
use ddbx_recording::{
    Beginning, Choice, ChoiceValue, Entry, Files, Gap, Happens, Keep, LogWriter, Moment,
    NewProcess, Note, Options, Payload, Program, Queue, Recording, SentAs, SessionManifest, Who,
    Why, join, seal, verify,
};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[test]
fn the_format_changes_only_with_its_version_and_all_versions_can_be_read() {
    let made = tempfile::tempdir().unwrap();
    make(made.path());
    let ours = golden().join(format!("v{VERSION}"));
    if env::var_os("DDBX_BLESS").is_some() {
        copy(made.path(), &ours);
        fs::write(ours.with_extension("txt"), describe(&ours)).unwrap();
    }
    let same = |file: &str| {
        let [now, then] = [made.path(), &ours].map(|side| fs::read(side.join(file)).unwrap());
        assert_eq!(now, then, "{file} has changed: change the version, too");
    };
    same("session.json");
    same("seal.json");
    for process in ["gateway@1", "orders@1", "stock@1"] {
        same(&format!("{process}/process.json"));
        same(&format!("{process}/000001.log"));
    }
    let mut versions = 0;
    for entry in fs::read_dir(golden()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            versions += 1;
            let expected = fs::read_to_string(path.with_extension("txt")).unwrap();
            assert_eq!(describe(&path), expected, "{}", path.display());
        }
    }
    assert_eq!(versions, VERSION);
}

fn describe(directory: &Path) -> String {
    let recording = Recording::open(directory).unwrap();
    let mut text = format!("{:?}\n{:?}\n", recording.session(), recording.seal());
    for log in recording.logs() {
        writeln!(text, "\n{:?}", log.manifest()).unwrap();
        let mut reader = log.read().unwrap();
        for recorded in reader.by_ref() {
            let recorded = recorded.unwrap();
            writeln!(text, "block {} {:?}", recorded.position.block, recorded.entry).unwrap();
        }
        writeln!(text, "{:?}", reader.tail()).unwrap();
    }
    assert!(verify(&recording).is_sound());
    text
}

/// Every kind of entry, in more than one block.
fn make(directory: &Path) {
    let (gateway, orders) = (process("gateway"), process("orders"));
    let main = ControlId::root(&gateway, "main").unwrap();
    let child = main.child("pollér").unwrap();
    let call = |path: &[u32]| CallId { control: main.clone(), path: CallPath::new(path).unwrap() };
    let method = || MethodName::new("Orders.place").unwrap();
    let at = |process: &ProcessName, number| EventId {
        process: process.clone(),
        number: EventNumber(number),
    };
    let connection = || ConnectionId { client: gateway.clone(), nth: 1 };
    let label = PointLabel::new("here").unwrap();
    let second = CallPath::root(2);
    let choice = |call, value| {
        let (control, name) = (main.clone(), ChoiceName::new("replica").unwrap());
        Entry::Choice(Choice { control, call, name, value: ChoiceValue::new(value).unwrap() })
    };
    let gap = |missing, why| Entry::Gap(Gap { missing, why });
    let entered = |nth, what, from| {
        let (control, call) = (main.clone(), Some(second.clone()));
        EventKind::Entered { control, call, nth, what, from }
    };
    let sent =
        |path: &[u32], content| EventKind::CallSent { call: call(path), method: method(), content };
    let arrived = |path: &[u32], sent_as| EventKind::CallArrived {
        call: call(path),
        method: method(),
        sent_as,
    };
    let has_answer = |path: &[u32], sent_as| EventKind::ReturnArrived { call: call(path), sent_as };

    let at_gateway = [
        event(1, 0, EventKind::Connected { connection: connection() }),
        event(2, 0, EventKind::Spawned { control: main.clone(), by: None }),
        event(3, 0, EventKind::Spawned { control: child.clone(), by: Some(main.clone()) }),
        said(event(4, 0, sent(&[1], 0)), r#"{"item":"tea"}"#),
        choice(None, vec![7, 0, 255]),
        event(5, 2_000_000_000, has_answer(&[1], Some(at(&orders, 5)))),
        event(6, 2_000_000_000, sent(&[2], 0x1234)),
        event(7, 0, EventKind::DeadlineExpired { call: call(&[2]), end: End::Caller }),
        event(8, 0, EventKind::Cancelled { call: call(&[2]), end: End::Caller }),
        event(9, 0, EventKind::Fired { control: child.clone(), call: None, timer: 3 }),
        gap(3, Why::DiskFull),
        event(13, 0, has_answer(&[5], None)),
        event(14, 0, EventKind::Ended { control: child.clone() }),
    ];
    let at_orders = [
        event(1, 0, EventKind::Accepted { connection: connection(), sent_as: at(&gateway, 1) }),
        event(2, 0, arrived(&[1], Some(at(&gateway, 4)))),
        event(3, 0, sent(&[1, 1], u16::MAX)),
        event(4, 0, has_answer(&[1, 1], None)),
        said(event(5, 0, EventKind::ReturnSent { call: call(&[1]) }), &"x".repeat(5_000)),
        event(6, 0, arrived(&[2], Some(at(&gateway, 6)))),
        event(7, 0, entered(1, Shared::Lock, None)),
        event(8, 0, entered(2, Shared::Read, None)),
        event(9, 0, entered(3, Shared::Write, None)),
        event(10, 0, entered(4, Shared::Permit, None)),
        event(11, 0, entered(5, Shared::Notice, None)),
        event(12, 0, entered(6, Shared::Message, Some(child))),
        choice(Some(second.clone()), b"stock#2".to_vec()),
        event(13, 0, EventKind::Point { control: main.clone(), call: Some(second.clone()), label }),
        event(14, 0, EventKind::DeadlineExpired { call: call(&[2]), end: End::Callee }),
        event(15, 0, EventKind::Cancelled { call: call(&[2]), end: End::Callee }),
        event(16, 0, arrived(&[7], None)),
        gap(1, Why::QueueFull),
        event(18, 0, EventKind::Closed { connection: connection() }),
    ];
    write(directory, &gateway, &at_gateway);
    write(directory, &orders, &at_orders);
    let stock = self::process("stock");
    write_notes(directory, &stock);
    seal(directory, BTreeMap::from([(gateway, 0), (orders, 137), (stock, 0)])).unwrap();
}

/// Every kind of note, and a control that is named in full and by what it has begun with.
fn write_notes(directory: &Path, process: &ProcessName) {
    static COUNT: LazyLock<MethodName> = LazyLock::new(|| MethodName::new("Stock.count").unwrap());
    let (here, there) = (ProcessIndex(1), ProcessIndex(2));
    let begun = |home, hash, nth| Beginning { home, method: &COUNT, hash, nth };
    let (from, own) = (begun(there, 0xfedc_ba98_7654_3210, 300), begun(here, 7, 1));
    let named = Who::Named(ControlId::root(process, "main").unwrap());
    let sent_as = SentAs { process: there, number: EventNumber(4) };
    let notes = [
        (Who::Begun(from), Happens::CallArrived { method: &COUNT, sent_as }),
        (Who::Begun(own), Happens::CallSent { method: &COUNT, content: 0x1234 }),
        (Who::Begun(own), Happens::ReturnArrived { sent_as: SentAs::default() }),
        (named.clone(), Happens::CallSent { method: &COUNT, content: 1 }),
        (named, Happens::ReturnArrived { sent_as }),
        (Who::Begun(from), Happens::ReturnSent),
    ];
    let (mut writer, queue) = (writer(directory, process), Queue::default());
    queue.meet(here, process.clone());
    queue.meet(there, self::process("elsewhere"));
    let now = RealTime::from_nanos(5_000_000_000);
    for (control, what) in notes {
        let note = Note { control, path: CallPath::root(1), what };
        queue.note_in_time(now, Delay::ZERO, || note.into());
    }
    let name = |of: ProcessIndex| self::process(if of == here { "stock" } else { "elsewhere" });
    queue.note(now, Delay::ZERO, EventKind::Ended { control: own.id(name) });
    writer.drain(now, &queue);
    writer.close(now).unwrap();
}

fn write(directory: &Path, process: &ProcessName, entries: &[Entry]) {
    let (mut writer, now) = (writer(directory, process), RealTime::default());
    for some in entries.chunks(4) {
        some.iter().for_each(|entry| writer.append(now, entry));
        writer.flush(now);
    }
    writer.close(now).unwrap();
}

fn writer(directory: &Path, process: &ProcessName) -> LogWriter<Files> {
    let session = SessionManifest {
        session: SessionName::new("shop").unwrap(),
        created: "2026-01-01T00:00:00Z".to_owned(),
        ddbx: "0.1.0".to_owned(),
        keep: Keep::All,
        program: Some(Program {
            file: "/srv/shop/ddbx.toml".to_owned(),
            text: "[[process]]\nname = \"gateway\"\n".to_owned(),
        }),
    };
    let command = Some(vec!["shop".to_owned(), process.to_string()]);
    let new = NewProcess { name: process.clone(), pid: 42, command };
    let files = join(directory, &session, new).unwrap();
    LogWriter::new(files, process, Options::default())
}

fn event(number: u64, delay: u64, kind: EventKind) -> Entry {
    let at = RealTime::from_nanos(5_000_000_000 + number as i64 * 31_337);
    Entry::Event(Moment {
        number: EventNumber(number),
        at,
        delay: Delay::from_nanos(delay),
        kind,
        payload: None,
    })
}

/// With what was said there.
fn said(mut event: Entry, text: &str) -> Entry {
    if let Entry::Event(moment) = &mut event {
        moment.payload = Some(Box::new(Payload::new(text)));
    }
    event
}

fn process(name: &str) -> ProcessName {
    ProcessName::new(name).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}
