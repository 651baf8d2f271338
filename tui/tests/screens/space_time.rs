//! The diagram of space and time: what is selected, and what it looks like.

use crate::story::{Story, drawn, press, shop};
use ddbx_protocol::control::{HoldReason, HoldView, Notice, Reply, Request, What};
use ddbx_protocol::{ControlId, EventKind, HoldId};
use ddbx_tui::state::{State, Update};
use insta::assert_snapshot;

fn of(story: &Story) -> State {
    let mut state = State::of_session("shop", false);
    state.handle_update(Update::Up);
    push(&mut state, story);
    press(&mut state, "5");
    state
}

fn push(state: &mut State, story: &Story) {
    for event in &story.events {
        state.events.push_at(event.clone(), event.at.as_nanos());
    }
}

/// So many more in a process, a millisecond after the other.
fn more(process: &str, from_ms: i64, number: i64) -> Story {
    let mut story = Story::default();
    for nth in 0..number {
        let control = ControlId::new(format!("{process}/main")).unwrap();
        story.add(process, (from_ms + nth) * 1_000, EventKind::Ended { control });
    }
    story
}

/// The name and number of the event that is selected.
fn selected(state: &State) -> Option<String> {
    let log = state.space_time.log(&state.events);
    Some(log.get(state.space_time.selected()?)?.event.id.to_string())
}

/// What the line above the axis says.
fn foot(state: &State) -> String {
    let picture = drawn(state, 120, 24);
    picture.lines().nth(20).unwrap().to_owned()
}

fn hold(id: u64, process: &str, reason: HoldReason) -> HoldView {
    HoldView {
        id: HoldId(id),
        process: process.to_owned(),
        at: "Payments.charge@arrive".to_owned(),
        control: None,
        reason,
        breakpoint: None,
        because_of: Vec::new(),
        held_ms: 0,
        at_least_ms: None,
        args: None,
        result: None,
    }
}

#[test]
fn nothing_has_happened() {
    let state = of(&Story::default());
    assert_snapshot!("empty-80", drawn(&state, 80, 24));
    assert_snapshot!("empty-120", drawn(&state, 120, 40));
}

#[test]
fn what_happened() {
    let mut state = of(&shop());
    let views = [("busy", ""), ("selected", "←↑↑←←"), ("wide", "+"), ("time", "--"), ("far", "--")];
    for (name, keys) in views {
        press(&mut state, keys);
        assert_snapshot!(format!("{name}-80"), drawn(&state, 80, 24));
        assert_snapshot!(format!("{name}-120"), drawn(&state, 120, 40));
    }
}

#[test]
fn who_stands_still() {
    let mut state = of(&shop());
    let holds = [hold(1, "payments", HoldReason::Breakpoint), hold(2, "orders", HoldReason::Delay)];
    let stands = holds.iter().map(|hold| Notice { at_ms: 47, what: What::Stands(hold.clone()) });
    state.handle_update(Update::Notices(stands.collect()));
    let now = holds.map(|hold| HoldView { held_ms: 1_234, ..hold });
    state.handle_update(Update::Answer(Request::Holds, Box::new(Reply::Holds(now.to_vec()))));
    assert_snapshot!("held-80", drawn(&state, 80, 24));
    assert_snapshot!("held-120", drawn(&state, 120, 40));
    let goes = What::GoesOn { hold: HoldId(1), process: "payments".to_owned(), held_ms: 2_000 };
    state.handle_update(Update::Notices(vec![Notice { at_ms: 2_047, what: goes }]));
    assert_eq!(state.space_time.stands().len(), 1);
}

#[test]
fn many_lanes_are_scrolled_and_counted() {
    let mut state = of(&Story::default());
    for nth in 0..100 {
        push(&mut state, &more(&format!("replica-{nth}"), nth % 10, 1));
    }
    assert!(drawn(&state, 80, 24).contains("1–18 of 100 processes"));
    press(&mut state, &"↓".repeat(60));
    assert!(state.space_time.follows(), "only another lane is selected");
    let picture = drawn(&state, 80, 24);
    assert!(picture.contains("▶replica-60"), "{picture}");
    assert_snapshot!("many-80", picture);
    press(&mut state, "/replica-7⏎");
    let picture = drawn(&state, 80, 24);
    assert!(picture.contains("11 processes with /replica-7"), "{picture}");
    assert!(!picture.contains("replica-60"));
}

#[test]
fn wide_names_keep_their_columns() {
    let mut state = of(&more("在庫管理サービス・東京リージョン", 0, 2));
    push(&mut state, &more("b", 5, 2));
    let picture = drawn(&state, 80, 24);
    let mut lanes = picture.lines().filter(|line| line.contains('•'));
    assert!(lanes.next().unwrap().contains('…'));
    assert_snapshot!("wide-names-80", picture);
}

#[test]
fn keys_go_from_event_to_event() {
    let mut state = of(&shop());
    assert_eq!(selected(&state), None, "it follows");
    for (keys, expected) in [
        ("↓←", "orders:6"),  // the last of its lane
        ("←", "orders:5"),   // the one before
        ("→→→", "orders:6"), // there are no more
        ("↓", "inventory:5"),
        ("↓", "payments:1"), // the nearest in time
        ("↑", "inventory:5"),
        ("←←", "inventory:3"),
        ("↑", "orders:3"),
        ("↑↑↑", "gateway:3"),
        ("g", "gateway:1"),
        ("↓↓↓↓↓", "payments:1"),
    ] {
        press(&mut state, keys);
        assert_eq!(selected(&state).as_deref(), Some(expected), "after {keys}");
    }
    press(&mut state, "G");
    assert!(state.space_time.follows());
    press(&mut state, " ");
    assert_eq!(selected(&state).as_deref(), Some("payments:2"), "the last of its lane");
    press(&mut state, "⏎");
    assert!(drawn(&state, 80, 24).contains("answers  gateway/main!1.2"));
}

#[test]
fn zooms_in_and_out() {
    let mut state = of(&shop());
    let mut words = Vec::new();
    for key in "++-------+".chars() {
        press(&mut state, &key.to_string());
        words.push(state.space_time.zoom_word());
    }
    let expected = [
        "an event: 8 columns",
        "an event: 8 columns",
        "an event: 1 column",
        "a column: 100 µs",
        "a column: 1 ms",
        "a column: 10 ms",
        "a column: 100 ms",
        "a column: 1 s",
        "a column: 1 s",
        "a column: 100 ms",
    ];
    assert_eq!(words, expected);
}

#[test]
fn what_is_looked_at_stays_whatever_happens() {
    let mut state = of(&shop());
    for zoom in ["", "--"] {
        press(&mut state, zoom);
        press(&mut state, " ");
        let before = drawn(&state, 120, 24);
        // More than is kept: all that is looked at is gone from the log.
        push(&mut state, &more("gateway", 50, 25_000));
        push(&mut state, &more("newcomer", 50, 10));
        assert_eq!(drawn(&state, 120, 24), before);
        press(&mut state, "⏎");
        assert!(!drawn(&state, 120, 24).contains("it is not there any more"));
        press(&mut state, "⎋ ");
        assert!(drawn(&state, 120, 24).contains("newcomer"));
        state = of(&shop());
    }
}

#[test]
fn past_and_future_are_counted() {
    let mut state = of(&shop());
    // inventory has read its stock.
    press(&mut state, "g↓↓→");
    assert_eq!(selected(&state).as_deref(), Some("inventory:2"));
    let foot = foot(&state);
    assert!(foot.contains("● 5 before  ○ 10 after  · 3 beside"), "{foot}");
}
