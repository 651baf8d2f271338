//! Recordings that somebody has damaged or forged: they are refused, or what the programs
//! do is told from what they say. None is taken for what happened.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ddbx_protocol::{CallPath, End, EventId, EventKind, EventNumber, ProcessName, RealTime};
use ddbx_recording::{
    Entry, LogWriter, Moment, NewProcess, Options, ProcessManifest, Recording, SessionManifest,
    Tail, create, join, seal,
};

use crate::cluster::Done;
use crate::troupe::{BANK, Is, LATE, Part, Play, is_identical, lines, replays};

/// A recording in the hands of a forger.
#[derive(Clone)]
struct Forged {
    session: SessionManifest,
    exits: BTreeMap<ProcessName, u8>,
    logs: Vec<ForgedLog>,
}

#[derive(Clone)]
struct ForgedLog {
    manifest: ProcessManifest,
    entries: Vec<Entry>,
    is_closed: bool,
}

impl Forged {
    fn read(directory: &Path) -> Self {
        let recording = Recording::open(directory).unwrap();
        let logs = recording.logs().iter().map(|log| {
            let mut reader = log.read().unwrap();
            let entries = std::iter::from_fn(|| reader.read().unwrap()).map(|read| read.entry);
            let entries = entries.collect();
            let is_closed = reader.tail() == Tail::Closed;
            ForgedLog { manifest: log.manifest().clone(), entries, is_closed }
        });
        Self {
            session: recording.session().clone(),
            exits: recording.seal().unwrap().exits.clone(),
            logs: logs.collect(),
        }
    }

    /// Writes it down so that all is in order: numbers, departures, sums and seal.
    fn write(mut self, directory: &Path) {
        let mut numbers: BTreeMap<EventId, EventNumber> = BTreeMap::new();
        for log in &mut self.logs {
            let process = log.manifest.process.clone();
            for (event, new) in log.events().zip(1..) {
                let id = EventId { process: process.clone(), number: event.number };
                event.number = EventNumber(new);
                numbers.insert(id, event.number);
            }
        }
        for event in self.logs.iter_mut().flat_map(ForgedLog::events) {
            renumber(&mut event.kind, &numbers);
        }
        create(directory, &self.session).unwrap();
        for log in self.logs {
            let ProcessManifest { process: name, pid, command, .. } = log.manifest;
            let process = NewProcess { name: name.clone(), pid, command };
            let files = join(directory, &self.session, process).unwrap();
            let mut writer = LogWriter::new(files, &name, Options::default());
            let now = RealTime::default();
            log.entries.iter().for_each(|entry| writer.append(now, entry));
            writer.flush(now);
            if log.is_closed {
                writer.close(now).unwrap();
            }
        }
        seal(directory, self.exits).unwrap();
    }

    fn log(&mut self, process: &str) -> &mut ForgedLog {
        self.logs.iter_mut().find(|log| log.manifest.process.as_str() == process).unwrap()
    }
}

impl ForgedLog {
    fn events(&mut self) -> impl Iterator<Item = &mut Moment> {
        self.entries.iter_mut().filter_map(|entry| match entry {
            Entry::Event(moment) => Some(moment),
            _ => None,
        })
    }

    fn kind(&self, at: usize) -> Option<&EventKind> {
        match &self.entries[at] {
            Entry::Event(moment) if !moment.kind.is_of_connection() => Some(&moment.kind),
            _ => None,
        }
    }

    /// Two entries change places, but not their times and numbers.
    fn swap(&mut self, one: usize, other: usize) {
        let [Entry::Event(a), Entry::Event(b)] =
            self.entries.get_disjoint_mut([one, other]).unwrap()
        else {
            panic!("no events")
        };
        std::mem::swap(a, b);
        std::mem::swap(&mut a.at, &mut b.at);
    }
}

/// An arrival names the new number of its departure, and none if that is gone.
fn renumber(kind: &mut EventKind, numbers: &BTreeMap<EventId, EventNumber>) {
    match kind {
        EventKind::CallArrived { sent_as, .. } | EventKind::ReturnArrived { sent_as, .. } => {
            *sent_as = sent_as.take().and_then(|id| {
                let number = *numbers.get(&id)?;
                Some(EventId { number, ..id })
            });
        }
        EventKind::Accepted { sent_as, .. } => {
            sent_as.number = numbers.get(sent_as).copied().unwrap_or(sent_as.number);
        }
        _ => {}
    }
}

/// It does not pass for what happened.
fn is_found_out(done: &Done) -> bool {
    match done.code {
        2 => done.err.contains("error: ") && !done.out.contains("identical"),
        3 => {
            let has_place = done.out.contains("does not do what was recorded, at ")
                && done.out.contains("\n  expected  ")
                && done.out.contains("\n  actual    ");
            let has_missing = done.out.contains("the replay cannot go on:\n");
            (has_place || has_missing) && !done.out.contains("identical")
        }
        _ => false,
    }
}

const QUICK: [&str; 2] = ["--patience", "2s"];

/// So many of all, spread out evenly, with other ones in every run.
fn sample<T>(all: Vec<T>, number: usize) -> Vec<T> {
    let step = (all.len() / number).max(1);
    let first = fastrand::usize(0..step);
    all.into_iter().skip(first).step_by(step).collect()
}

/// All places in all logs.
fn places(forged: &Forged) -> Vec<(usize, usize)> {
    let logs = forged.logs.iter().enumerate();
    logs.flat_map(|(log, of)| (0..of.entries.len()).map(move |at| (log, at))).collect()
}

fn recorded() -> (Play, PathBuf) {
    let play = Play::new(&BANK);
    play.record("recording");
    let directory = play.cluster.path("recording");
    (play, directory)
}

/// Whoever gives up a call does not wait for that, and a replay does not either.
fn may_be_missing(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Cancelled { end: End::Caller, .. })
}

#[test]
fn an_event_is_missing() {
    let (play, directory) = recorded();
    let forged = Forged::read(&directory);
    let counts = |&(log, at): &(usize, usize)| {
        forged.logs[log].kind(at).is_some_and(|kind| !may_be_missing(kind))
    };
    let places = places(&forged).into_iter().filter(counts).collect();
    for (log, at) in sample(places, 2 * replays()) {
        let mut forged = forged.clone();
        let removed = forged.logs[log].entries.remove(at);
        let name = format!("without-{log}-{at}");
        forged.write(&play.cluster.path(&name));
        let done = play.replay(&name, &QUICK);
        assert!(is_found_out(&done), "without {removed:?}: {done:?}");
    }
}

#[test]
fn two_events_have_changed_places() {
    let (play, directory) = recorded();
    let forged = Forged::read(&directory);
    let is_pair = |&(log, at): &(usize, usize)| {
        let log: &ForgedLog = &forged.logs[log];
        at + 1 < log.entries.len() && log.kind(at).is_some() && log.kind(at + 1).is_some()
    };
    let places = places(&forged).into_iter().filter(is_pair).collect();
    for (log, at) in sample(places, 2 * replays()) {
        let mut forged = forged.clone();
        let [one, other] = [at, at + 1].map(|at| forged.logs[log].kind(at).cloned().unwrap());
        forged.logs[log].swap(at, at + 1);
        let name = format!("swapped-{log}-{at}");
        forged.write(&play.cluster.path(&name));
        let done = play.replay(&name, &QUICK);
        // What is done side by side may as well come in the other order.
        let side_by_side = one.control() != other.control()
            || matches!((branch(&one), branch(&other)), (Some(a), Some(b)) if a != b);
        let may_be = side_by_side && is_identical(&done) && done.code == 0;
        assert!(may_be || is_found_out(&done), "{one} and {other}: {done:?}");
    }
}

/// The bank asks two things at once for one customer.
fn branch(kind: &EventKind) -> Option<&CallPath> {
    let path = match kind {
        EventKind::Point { call, .. } => call.as_ref()?,
        kind => &kind.call()?.path,
    };
    path.outer().is_some().then_some(path)
}

/// The careful forger of an order that is possible gets that order.
#[test]
fn a_forged_order_that_is_possible_is_the_one_that_comes() {
    let play = Play::new(&[
        Part::of("board", Is::Server, &[]),
        Part { words: &["outside", "--only-two"], ..Part::of("outside", Is::Client, &["board"]) },
    ]);
    let (name, printed) = (0..200)
        .map(|nth| format!("recording-{nth}"))
        .map(|name| (play.record(&name), name))
        .find_map(|(printed, name)| {
            // Both are on their way before either arrives, and one is answered before the
            // other one arrives.
            let mut forged = Forged::read(&play.cluster.path(&name));
            let [both_sent, one_by_one] = ["outside", "board"].map(|process| {
                let log = forged.log(process);
                let kinds = (0..log.entries.len()).filter_map(|at| log.kind(at));
                kinds.map(EventKind::is_departure).collect::<Vec<_>>()
            });
            let is_possible =
                both_sent == [true, true, false, false] && one_by_one == [false, true, false, true];
            is_possible.then_some((name, printed))
        })
        .expect("both are on their way at some time");
    let mut forged = Forged::read(&play.cluster.path(&name));
    let board = forged.log("board");
    let at: Vec<_> = (0..board.entries.len()).filter(|at| board.kind(*at).is_some()).collect();
    let [first, answer, second, other_answer] = at[..] else { panic!("two calls") };
    board.swap(first, second);
    board.swap(answer, other_answer);
    // Who came first has its answer first.
    let outside = forged.log("outside");
    let at: Vec<_> = (0..outside.entries.len()).filter(|at| outside.kind(*at).is_some()).collect();
    outside.swap(at[2], at[3]);
    forged.write(&play.cluster.path("forged"));
    let done = play.replay("forged", &QUICK);
    assert!(done.code == 0 && is_identical(&done), "{done:?}");
    let other_way: Vec<_> = printed
        .iter()
        .map(|line| line.replace('1', "x").replace('2', "1").replace('x', "2"))
        .collect();
    assert_eq!(lines(&done.out), other_way);
    assert_ne!(printed, other_way);
}

/// Its deadline ends a handler, and before that has been answered the caller gives up.
#[test]
fn a_call_is_given_up_while_its_deadline_is_answered() {
    let play = Play::new(&LATE);
    let (mut forged, at) = (0..200)
        .map(|nth| format!("recording-{nth}"))
        .find_map(|name| {
            play.record(&name);
            let mut forged = Forged::read(&play.cluster.path(&name));
            let kinds = |log: &ForgedLog| -> Vec<_> {
                log.entries.iter().enumerate().filter_map(|(at, _)| log.kind(at).cloned()).collect()
            };
            let of_askers = kinds(forged.log("askers"));
            let of_relay = kinds(forged.log("relay"));
            let relay = forged.log("relay");
            let at = (0..relay.entries.len()).find(|at| match relay.kind(*at) {
                Some(EventKind::ReturnSent { call }) => {
                    let expired =
                        EventKind::DeadlineExpired { call: call.clone(), end: End::Callee };
                    let is_heard = |kind: &EventKind| matches!(kind, EventKind::ReturnArrived { call: of, .. } if of == call);
                    of_relay.contains(&expired) && !of_askers.iter().any(is_heard)
                }
                _ => false,
            });
            at.map(|at| (forged, at))
        })
        .expect("somebody is late at some time");
    let Entry::Event(moment) = &mut forged.log("relay").entries[at] else { panic!("an event") };
    let EventKind::ReturnSent { call } = moment.kind.clone() else { panic!("an answer") };
    moment.kind = EventKind::Cancelled { call, end: End::Callee };
    forged.write(&play.cluster.path("forged"));
    let done = play.replay("forged", &[]);
    assert!(done.code == 0 && is_identical(&done), "{done:?}");
}

/// The files of a recording.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn a_bit_is_not_what_it_was() {
    let (play, directory) = recorded();
    for file in files(&directory) {
        let whole = fs::read(&file).unwrap();
        for at in sample((0..whole.len()).collect(), 6 * replays()) {
            let mut bytes = whole.clone();
            let bit = fastrand::u8(0..8);
            bytes[at] ^= 1 << bit;
            fs::write(&file, &bytes).unwrap();
            let done = play.replay("recording", &QUICK);
            let sentence = done.refused(2);
            assert!(sentence.len() > 20, "{}, bit {bit} of {at}: {sentence}", file.display());
        }
        fs::write(&file, &whole).unwrap();
    }
    let done = play.replay("recording", &[]);
    assert!(is_identical(&done), "{done:?}");
}

#[test]
fn the_tail_is_cut_off() {
    let (play, directory) = recorded();
    let all = files(&directory);
    let logs = || all.iter().filter(|file| file.extension().is_some_and(|e| e == "log"));
    for sealed in [true, false] {
        if !sealed {
            fs::remove_file(directory.join("seal.json")).unwrap();
        }
        for file in logs() {
            let whole = fs::read(file).unwrap();
            for at in sample((0..whole.len()).collect(), 4 * replays()) {
                fs::write(file, &whole[..at]).unwrap();
                let done = play.replay("recording", &QUICK);
                let sentence = done.refused(2);
                let of_seal = sentence.contains("was cut: it has");
                assert_eq!(of_seal, sealed, "cut at {at} of {}: {sentence}", file.display());
            }
            fs::write(file, &whole).unwrap();
        }
    }
    // Whoever is content with what is there gets that, or hears why not.
    for file in logs() {
        let whole = fs::read(file).unwrap();
        for at in sample((0..whole.len()).collect(), replays().div_ceil(2)) {
            fs::write(file, &whole[..at]).unwrap();
            let done = play.replay("recording", &[&QUICK[..], &["--partial"]].concat());
            let is_well = done.code == 0 && is_identical(&done);
            assert!(is_well || is_found_out(&done), "cut at {at} of {}: {done:?}", file.display());
        }
        fs::write(file, &whole).unwrap();
    }
}

#[test]
fn it_is_that_of_another_program() {
    let (play, _) = recorded();
    let with = |file: &str| play.replay("recording", &[&QUICK[..], &["-f", file]].concat());
    // Other names.
    let [board, outside] =
        [Part::of("board", Is::Server, &[]), Part::of("outside", Is::Client, &["board"])];
    play.write("others.toml", &[board, outside]);
    let sentence = with("others.toml").refused(2);
    let names = "is a recording of auditor, bank, customers, and what is to be started is";
    assert!(sentence.contains(names), "{sentence}");
    // Other programs of these names.
    play.write(
        "same-names.toml",
        &[
            Part::of("auditor", Is::Server, &[]),
            Part { words: &["board"], ..Part::of("bank", Is::Server, &[]) },
            Part { words: &["outside"], ..Part::of("customers", Is::Client, &["bank"]) },
        ],
    );
    let done = with("same-names.toml");
    assert!(done.code == 3 && is_found_out(&done), "{done:?}");
    assert!(done.out.contains("not recorded: calls Board.write"), "{done:?}");
    // One of them is not started at all.
    play.write("fewer.toml", &BANK[..2]);
    let done = with("fewer.toml");
    assert!(done.code == 3 && done.out.contains("customers has not come"), "{done:?}");
}
