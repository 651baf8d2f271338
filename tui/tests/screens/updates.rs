//! What is heard changes what is shown, and never more than there is room for.

use ddbx_protocol::control::{Reply, Request, What};
use ddbx_protocol::{
    ControlId, Delay, Event, EventId, EventKind, EventNumber, HoldId, ProcessName, RealTime,
};
use ddbx_tui::keys::Key;
use ddbx_tui::state::{Link, Update};

use crate::fixtures::{answers, busy, disconnected, empty, held, notice, press, replay, types};
use crate::snapshots::drawn;

const SIZE: (u16, u16) = (80, 24);

#[test]
fn a_session_that_is_gone_and_back() {
    let mut state = disconnected();
    assert!(drawn(&mut state, SIZE).contains("CENTRAL IS GONE for 2.5"));
    assert_eq!(types(&mut state, "P"), []);
    assert!(drawn(&mut state, SIZE).contains("nothing can be asked of the session now"));
    assert!(state.handle_update(Update::Up), "it is asked at once what is new");
    assert_eq!(state.link, Link::Up);
    assert!(!drawn(&mut state, SIZE).contains("GONE"));
}

/// A session that is reached again tells again what has happened.
#[test]
fn what_is_told_again_is_there_once() {
    let mut state = busy();
    types(&mut state, "7");
    assert!(drawn(&mut state, SIZE).contains("gateway takes part"));
    state.handle_update(Update::Begins);
    assert!(!drawn(&mut state, SIZE).contains("gateway takes part"));
    assert!(state.events.range().is_empty());
}

#[test]
fn what_is_selected_stays_selected() {
    let mut state = held();
    types(&mut state, "2jj");
    let mut holds = state.seen.holds.clone();
    holds.remove(1);
    answers(&mut state, Request::Holds, Reply::Holds(holds.clone()));
    press(&mut state, &[Key::Enter]);
    assert!(drawn(&mut state, SIZE).contains("hold 3: Esc"), "{}", drawn(&mut state, SIZE));
    // Whoever goes on closes what was open about it.
    let gone = Reply::Refused("nobody stands as hold 3 now".into());
    answers(&mut state, Request::Backtrace(HoldId(3)), gone);
    assert!(drawn(&mut state, SIZE).contains("hold 3 has gone on"));
}

#[test]
fn a_turn_in_a_replay_is_explained() {
    let mut state = replay();
    for key in [Key::Char('w'), Key::Enter] {
        press(&mut state, &[Key::Char('2'), key]);
        let shown = drawn(&mut state, (120, 40));
        assert!(shown.contains("It was event 45 when it was recorded"), "{shown}");
        assert!(shown.contains("Event 42 comes next"), "{shown}");
        press(&mut state, &[Key::Esc]);
    }
}

#[test]
fn answers_and_refusals_are_said() {
    let mut state = busy();
    answers(&mut state, Request::Pause(None), Reply::Done(5));
    assert!(drawn(&mut state, SIZE).contains("all 5 processes are held"));
    answers(
        &mut state,
        Request::Release(HoldId(9)),
        Reply::Refused("nobody stands as hold 9".into()),
    );
    assert!(drawn(&mut state, SIZE).contains("nobody stands as hold 9"));
    state.handle_update(Update::Tick(60_000));
    assert!(!drawn(&mut state, SIZE).contains("nobody stands as hold 9"));
    types(&mut state, "7");
    assert!(drawn(&mut state, SIZE).contains("refused: nobody stands as hold 9"));
}

/// Names and values of the program cannot move the cursor, nor end a line.
#[test]
fn nothing_of_the_program_reaches_the_terminal_as_it_is() {
    let mut state = held();
    let evil = "x\u{1b}[2J\r\n\u{202e}";
    let mut holds = state.seen.holds.clone();
    holds[0].at = evil.to_owned();
    holds[0].args = Some(serde_json::Value::String(evil.to_owned()));
    let mut processes = state.seen.processes.clone();
    processes[0].name = evil.to_owned();
    answers(&mut state, Request::Holds, Reply::Holds(holds));
    answers(&mut state, Request::Processes, Reply::Processes(processes));
    answers(&mut state, Request::Pause(None), Reply::Refused(evil.to_owned()));
    state.handle_update(Update::Notices(vec![notice(5, What::Joined(evil.to_owned()))]));
    state.handle_update(Update::Printed(evil.to_owned()));
    for keys in
        [&[Key::Char('1')][..], &[Key::Char('2')], &[Key::Enter], &[Key::Esc, Key::Char('7')]]
    {
        press(&mut state, keys);
        let shown = drawn(&mut state, (120, 40));
        let is_evil =
            |letter: char| letter != '\n' && (letter.is_control() || letter == '\u{202e}');
        assert!(!shown.contains(is_evil), "{shown:?}");
        assert!(shown.contains("x\\u{1b}[2J"), "{shown}");
    }
}

#[test]
fn text_that_is_too_wide_has_an_ellipsis_and_wide_letters_count() {
    let mut state = busy();
    let mut processes = state.seen.processes.clone();
    processes[0].name = "注文処理サービス注文処理サービス注文処理".to_owned();
    answers(&mut state, Request::Processes, Reply::Processes(processes));
    let shown = drawn(&mut state, SIZE);
    let line = shown.lines().find(|line| line.contains('注')).unwrap();
    assert!(line.contains('…') && line.contains("running"), "{shown}");
}

#[test]
fn what_is_kept_is_bounded() {
    let mut state = empty();
    for round in 0..40 {
        let notices = (0..1_000).map(|nth| notice(round, What::Joined(format!("p{nth}"))));
        state.handle_update(Update::Notices(notices.collect()));
    }
    types(&mut state, "7");
    assert!(drawn(&mut state, SIZE).contains("1 of 2000"), "{}", drawn(&mut state, SIZE));
}

/// However many processes come and go, and do something.
#[test]
fn events_of_processes_that_come_and_go_are_bounded() {
    let mut state = empty();
    let happens = |nth: u64| Event {
        id: EventId {
            process: ProcessName::new(format!("worker-{nth}")).unwrap(),
            number: EventNumber(1),
        },
        at: RealTime::default(),
        delay: Delay::ZERO,
        kind: EventKind::Ended { control: ControlId::new("p/main").unwrap() },
    };
    for nth in 0..10_000 {
        state.events.push(happens(nth), nth);
    }
    let lanes = state.events.lanes().all().len();
    assert!(lanes < 5_000, "{lanes}");
    assert!(state.events.missed > 5_000, "{}", state.events.missed);
}

#[test]
fn what_there_was_no_room_for_is_said_once_and_shown() {
    let mut state = busy();
    let mut processes = state.seen.processes.clone();
    for events in [3, 4] {
        processes[1].dropped.events = events;
        answers(&mut state, Request::Processes, Reply::Processes(processes.clone()));
    }
    let mut session = state.seen.session.clone().unwrap();
    session.dropped.values = 2;
    answers(&mut state, Request::Session, Reply::Session(session));
    types(&mut state, "7");
    let log = drawn(&mut state, (120, 40));
    assert_eq!(log.matches("there was not room in inventory").count(), 1, "{log}");
    assert!(log.contains("there was not room in the session"), "{log}");
    types(&mut state, "1j");
    press(&mut state, &[Key::Enter]);
    let detail = drawn(&mut state, (120, 40));
    assert!(detail.contains("no room for  4 events"), "{detail}");
}
