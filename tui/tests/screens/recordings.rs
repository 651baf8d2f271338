//! Recordings: the same screens, with a time that can be moved.

use std::collections::BTreeMap;
use std::path::Path;

use crate::story::{Story, drawn, press, shop};
use ddbx_protocol::control::ProcessState;
use ddbx_protocol::{Event, ProcessName, RealTime, SessionName};
use ddbx_recording::{
    Entry, Gap, Keep, LogWriter, Moment, NewProcess, OpenError, Options, SessionManifest, Why, join,
};
use ddbx_tui::recording::load;
use ddbx_tui::state::State;
use insta::assert_snapshot;
use tempfile::TempDir;

/// When the clock of each process began, in microseconds: none knows of the others.
const ORIGINS: [(&str, i64); 4] =
    [("gateway", -5_000_000), ("orders", 900), ("inventory", -70), ("payments", 44_000)];

fn of_process<'a>(events: &'a [Event], name: &str) -> Vec<&'a Event> {
    events.iter().filter(|event| event.id.process.as_str() == name).collect()
}

/// Writes a recording. The logs of those that are killed have no end.
fn record(directory: &Path, story: &Story, killed: &[&str], gap_in: Option<&str>) {
    let session =
        SessionManifest::new(SessionName::new("shop").unwrap(), "2026-01-01T00:00:00Z", Keep::All);
    for (pid, (name, origin)) in (100..).zip(ORIGINS) {
        let process = ProcessName::new(name).unwrap();
        let new = NewProcess { name: process.clone(), pid, command: None };
        let files = join(directory, &session, new).unwrap();
        let mut writer = LogWriter::new(files, &process, Options::default());
        let now = RealTime::default();
        for event in of_process(&story.events, name) {
            let mut moment = Moment::from(event.clone());
            moment.at = RealTime::from_nanos(event.at.as_nanos() - origin * 1_000);
            writer.append(now, &Entry::Event(moment));
        }
        if gap_in == Some(name) {
            writer.append(now, &Entry::Gap(Gap { missing: 12, why: Why::QueueFull }));
        }
        writer.flush(now);
        if !killed.contains(&name) {
            writer.close(now).unwrap();
        }
    }
}

fn shop_recording() -> (TempDir, State) {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("shop-1");
    record(&directory, &shop(), &[], None);
    let state = load(&directory).unwrap();
    (temporary, state)
}

#[test]
fn looks_like_a_session() {
    let (_temporary, mut state) = shop_recording();
    press(&mut state, "{]]]]]]]]]]]]]");
    let screens = ["processes", "holds", "calls", "breakpoints", "space-time", "events", "log"];
    for (key, name) in ('1'..).zip(screens) {
        press(&mut state, &key.to_string());
        assert_snapshot!(format!("{name}-80"), drawn(&state, 80, 24));
        assert_snapshot!(format!("{name}-120"), drawn(&state, 120, 40));
    }
    press(&mut state, "2w");
    assert_snapshot!("why-80", drawn(&state, 80, 24));
}

#[test]
fn clocks_are_aligned_by_what_was_sent() {
    let (_temporary, state) = shop_recording();
    let story = shop();
    let micros: BTreeMap<String, i64> =
        story.events.iter().map(|e| (e.id.to_string(), e.at.as_nanos() / 1_000)).collect();
    let mut last = i64::MIN;
    for (_, happened) in state.events.within(state.events.range()) {
        let event = &happened.event;
        assert!(happened.at >= last, "{} goes back", event.id);
        last = happened.at;
        // How long a call took is not known, only how long it took with its return.
        let off = (happened.at / 1_000 - micros[&event.id.to_string()]).abs();
        assert!(off < 500, "{} is off by {off} µs", event.id);
        if let Some(sent_as) = event.kind.sent_as() {
            let mut all = state.events.within(state.events.range());
            let (_, sent) = all.find(|(_, other)| other.event.id == *sent_as).unwrap();
            assert!(sent.at <= happened.at, "{} arrives before it was sent", event.id);
        }
    }
}

#[test]
fn time_is_moved_by_keys() {
    let (_temporary, mut state) = shop_recording();
    let done = |state: &State| state.cursor().unwrap().0;
    let all = shop().events.len() as u64;
    assert_eq!(done(&state), all, "it begins at the end");
    for (keys, expected) in [
        ("]}", all),
        ("[[", all - 2),
        ("{", 1),
        ("[", 1),
        ("]]", 3),
        ("5G", all),
        ("g", 1),
        ("→", 2), // the next of its lane
        ("6⏎⎋", 2),
        ("↓⏎⎋", 1), // the one before
        (" ", 1),
    ] {
        press(&mut state, keys);
        assert_eq!(done(&state), expected, "after {keys}");
    }
    assert!(drawn(&state, 80, 24).contains(&format!("event 1 of {all}")));
    press(&mut state, "b");
    assert!(state.overlays.is_empty(), "nothing can be changed");
}

#[test]
fn what_was_at_a_time_is_worked_out() {
    let (_temporary, mut state) = shop_recording();
    press(&mut state, "{");
    assert_eq!(state.seen.processes.len(), 1);
    // Until orders has called payments, and gateway has called inventory.
    press(&mut state, "]]]]]]]]]]]");
    let view = |state: &State, name: &str| {
        state.seen.processes.iter().find(|view| view.name == name).unwrap().clone()
    };
    let calls: Vec<_> = state.seen.calls.iter().map(|call| call.method.to_string()).collect();
    assert_eq!(calls, ["Orders.place", "Inventory.check"]);
    let inventory = view(&state, "inventory");
    assert_eq!((inventory.served, inventory.made, inventory.in_flight), (2, 0, 1));
    assert_eq!(inventory.methods, ["Inventory.check", "Inventory.reserve"]);
    assert_eq!(inventory.points, ["stock-read"]);
    let orders = view(&state, "orders");
    assert_eq!((orders.served, orders.made, orders.state), (1, 2, ProcessState::Running));
    assert_eq!(orders.calls, ["inventory"], "payments has nothing of it yet");
    assert_eq!(view(&state, "gateway").pid, 100);
    let holds: Vec<_> = state.seen.holds.iter().map(|hold| &hold.process).collect();
    assert_eq!(holds, ["payments"], "it stands at its gate");
    // Forth and back is the same as never having gone.
    let before = format!("{:?}", state.seen);
    press(&mut state, "}{]]]]]]]]]]]");
    assert_eq!(format!("{:?}", state.seen), before);
    press(&mut state, "}");
    assert!(state.seen.calls.is_empty() && state.seen.holds.is_empty());
    assert_eq!(view(&state, "payments").delay_ms, 40);
    assert_eq!(view(&state, "payments").state, ProcessState::Gone);
}

#[test]
fn what_is_missing_is_said() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("shop-2");
    record(&directory, &shop(), &["orders"], Some("inventory"));
    let mut state = load(&directory).unwrap();
    press(&mut state, "7");
    let picture = drawn(&state, 120, 24);
    assert!(picture.contains("12 of inventory are missing here"), "{picture}");
    assert!(picture.contains("12 events missed"), "{picture}");
    assert!(picture.contains("orders"), "{picture}");
    assert_eq!(state.events.missed, 12);
}

#[test]
fn what_is_no_recording_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    assert!(matches!(load(temporary.path()), Err(OpenError::NotARecording(_))));
    assert!(matches!(load(&temporary.path().join("nothing")), Err(OpenError::NotARecording(_))));
}

#[test]
fn an_empty_recording_shows_nothing_on_all_screens() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("empty");
    record(&directory, &Story::default(), &[], None);
    let mut state = load(&directory).unwrap();
    for key in "1234567".chars() {
        press(&mut state, &format!("{key}[]{{}}gG←→↑↓⏎⎋"));
        drawn(&state, 80, 24);
    }
    assert_eq!(state.cursor(), Some((0, 0, 0)));
}
