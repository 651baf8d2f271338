//! What a process pays for being recorded: its own time per event, how many events a second
//! are kept, and how many bytes they are.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{hint, iter};

use ddbx_protocol::{
    CallId, CallPath, ControlId, Delay, EventId, EventKind, EventNumber, MethodName, ProcessIndex,
    ProcessName, SessionName,
};
use ddbx_recording::{
    Beginning, Happens, Keep, NewProcess, Note, Options, Recording, SentAs, SessionManifest, Who,
    join, verify,
};
use ddbx_satellite::driver::{Course, Handle, NothingToReport};
use ddbx_satellite::logic::breakpoints::Groups;
use ddbx_satellite::recorder::Recorder;

use crate::stats::median;
use crate::usage;
use crate::verdict::{at_least, at_most, known, report};

/// A little more than the goal, so that the goal can be met.
const MANY_PER_SECOND: u64 = 1_250_000;
/// As many as a busy process has. None of them is lost: that would cost less.
const SOME_PER_SECOND: u64 = 200_000;
/// Events come in bursts, as they do.
const BURST: u64 = 1_000;
const LASTS: Duration = Duration::from_secs(3);

const RATE_MIN: f64 = 1_000_000.0;
const BYTES_MAX: f64 = 16.0;
const NANOS_MAX: f64 = 300.0;

struct Measured {
    /// How many a second are on the disk.
    kept_per_second: f64,
    missing: u64,
    bytes_per_event: f64,
    /// Of the thread to which they happen.
    nanos_per_event: f64,
    /// Of the whole process.
    cpu_nanos_per_event: f64,
}

/// Prints the table; true if all goals are met.
pub fn run(json: bool) -> bool {
    let measured = || {
        let many = measure(MANY_PER_SECOND, in_full, happens)?;
        let some = measure(SOME_PER_SECOND, in_full, happens)?;
        io::Result::Ok((many, some, measure(SOME_PER_SECOND, noted, is_noted)?))
    };
    let (many, some, noted) = match measured() {
        Ok(measured) => measured,
        Err(error) => {
            eprintln!("recorder: {error}");
            return false;
        }
    };
    let verdicts = [
        at_least("recorder, events/s kept", many.kept_per_second, RATE_MIN),
        known("recorder, events lost of 1,250,000/s", many.missing as f64),
        at_most("recorder, events lost of 200,000/s", some.missing as f64, 0.0),
        at_most("recorder, bytes per event", some.bytes_per_event, BYTES_MAX),
        at_most("recorder, caller's nanoseconds per event", some.nanos_per_event, NANOS_MAX),
        known("recorder, CPU nanoseconds per event", some.cpu_nanos_per_event),
        at_most("recorder, events lost of 200,000/s, noted", noted.missing as f64, 0.0),
        at_most("recorder, bytes per event, noted", noted.bytes_per_event, BYTES_MAX),
        at_most(
            "recorder, caller's nanoseconds per event, noted",
            noted.nanos_per_event,
            NANOS_MAX,
        ),
        known("recorder, CPU nanoseconds per event, noted", noted.cpu_nanos_per_event),
    ];
    report(&verdicts, json)
}

fn measure<E, I: Iterator<Item = E>>(
    per_second: u64,
    events: impl Fn(ProcessName) -> I,
    happens: impl Fn(&Handle, E),
) -> io::Result<Measured> {
    let dir = tempfile::tempdir()?;
    let recording = dir.path().join("recording");
    let name = ProcessName::new("inventory").expect("a valid name");
    let satellite = Handle::start(ProcessIndex(1), name.clone(), Arc::new(NothingToReport))?;
    let session = SessionName::new("bench").expect("a valid name");
    let manifest = SessionManifest::new(session, String::new(), Keep::All);
    let process = NewProcess { name: name.clone(), pid: std::process::id(), command: None };
    let files = join(&recording, &manifest, process).map_err(io::Error::other)?;
    let origin = satellite.origin();
    let recorder = Recorder::start(files, &name, Options::default(), origin)?;
    satellite.follow(Course { recorder: Some(recorder), ..Course::default() });

    let behind = || usage::own_cpu().saturating_sub(usage::thread_cpu());
    let (used, began) = (behind(), Instant::now());
    let mut bursts = Vec::new();
    let mut calls = events(name.clone());
    let mut happened = 0;
    while began.elapsed() < LASTS {
        let due = Duration::from_nanos(happened * 1_000_000_000 / per_second);
        while began.elapsed() < due {
            hint::spin_loop();
        }
        let start = Instant::now();
        for event in calls.by_ref().take(BURST as usize) {
            happens(&satellite, event);
        }
        bursts.push(start.elapsed().as_secs_f64() * 1e9 / BURST as f64);
        happened += BURST;
    }
    let lasted = began.elapsed();
    // It writes what is left.
    drop(satellite);
    let written = (behind() - used).as_secs_f64() * 1e9 / happened as f64;
    // Events are made whether they are recorded or not.
    let spent = median(bursts) - nanos_to_make(events(name));
    let recording = Recording::open(&recording).map_err(io::Error::other)?;
    let verification = verify(&recording);
    let log = verification.logs.first().ok_or(io::ErrorKind::NotFound)?;
    Ok(Measured {
        kept_per_second: log.events as f64 / lasted.as_secs_f64(),
        missing: log.missing,
        bytes_per_event: recording.bytes()? as f64 / log.events as f64,
        nanos_per_event: spent,
        cpu_nanos_per_event: written + spent,
    })
}

fn happens(satellite: &Handle, event: EventKind) {
    satellite.note(Delay::ZERO, || event);
}

fn is_noted(satellite: &Handle, note: Note) {
    let open = satellite.open_at(Groups(0));
    open.and_then(|open| satellite.pass_open(open, || satellite.now(), || note.into()));
}

/// The same as [`in_full`], as calls are noted that nothing stands in the way of.
fn noted(_: ProcessName) -> impl Iterator<Item = Note> {
    let leak = |name| -> &'static MethodName { Box::leak(Box::new(method(name))) };
    let (place, reserve) = (leak("Orders.place"), leak("Inventory.reserve"));
    let mut order = 0;
    iter::repeat_with(move || {
        order += 1;
        let (home, hash) = (ProcessIndex(2), u64::wrapping_mul(order, 0x9e37_79b9_7f4a_7c15));
        let control = Who::Begun(Beginning { home, method: place, hash, nth: 1 });
        let sent_as = SentAs { process: home, number: EventNumber(order) };
        let (outer, inner) = (CallPath::root(1), CallPath::root(1).child(1));
        [
            (&outer, Happens::CallArrived { method: place, sent_as }),
            (&inner, Happens::CallSent { method: reserve, content: order as u16 }),
            (&inner, Happens::ReturnArrived { sent_as }),
            (&outer, Happens::ReturnSent),
        ]
        .map(|(path, what)| Note { control: control.clone(), path: path.clone(), what })
    })
    .flatten()
}

/// Orders that are handled one after the other, each of them with a call of its own.
fn in_full(process: ProcessName) -> impl Iterator<Item = EventKind> {
    let (place, reserve) = (method("Orders.place"), method("Inventory.reserve"));
    let gateway = ProcessName::new("gateway").expect("a valid name");
    let mut order = 0;
    iter::repeat_with(move || {
        order += 1;
        let control = ControlId::root(&gateway, &format!("order-{order}")).expect("a valid name");
        let outer = CallId { control, path: CallPath::root(1) };
        let inner = CallId { path: outer.path.child(1), ..outer.clone() };
        let sent_as = Some(EventId { process: process.clone(), number: EventNumber(order) });
        let (call, method) = (outer.clone(), place.clone());
        let (asked, asks) = (inner.clone(), reserve.clone());
        [
            EventKind::CallArrived { call, method, sent_as: sent_as.clone() },
            EventKind::CallSent { call: asked, method: asks, content: order as u16 },
            EventKind::ReturnArrived { call: inner, sent_as },
            EventKind::ReturnSent { call: outer },
        ]
    })
    .flatten()
}

fn method(name: &str) -> MethodName {
    MethodName::new(name).expect("a valid name")
}

/// What it takes to make an event, whether it is recorded or not.
fn nanos_to_make<E>(mut calls: impl Iterator<Item = E>) -> f64 {
    median((0..200).map(|_| {
        let start = Instant::now();
        for event in calls.by_ref().take(BURST as usize) {
            hint::black_box(event);
        }
        start.elapsed().as_secs_f64() * 1e9 / BURST as f64
    }))
}
