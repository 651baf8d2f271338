//! The line after `:` : what its words do, what is refused, and how it is completed.

use std::collections::BTreeMap;
use std::time::Duration;

use ddbx_protocol::control::{Request, Wanted, Whom};
use ddbx_protocol::{BreakpointId, HoldId, Scope};
use ddbx_tui::keys::Key;
use ddbx_tui::state::detail::{About, Detail};
use ddbx_tui::state::events::EventLog;
use ddbx_tui::state::overlay::Overlay;
use ddbx_tui::state::{Command, Screen, State};
use ddbx_tui::words;

use crate::fixtures::{empty, held, press, types};
use crate::snapshots::{SIZES, drawn};

/// Types a line and enters it.
fn run(state: &mut State, line: &str) -> Vec<Command> {
    let typed = types(state, &format!(":{line}"));
    assert_eq!(typed, [], "{line}");
    press(state, &[Key::Enter])
}

fn said(state: &State) -> &str {
    state.message.as_ref().map(|(said, _)| said.as_str()).unwrap_or_default()
}

const BREAK: &str = "break 'inventory:point(last item)'";

#[test]
fn words_ask_what_the_command_line_asks() {
    let set = Wanted {
        spec: "inventory:Inventory.reserve@arrive".to_owned(),
        scope: Scope::Call,
        ignore: 10,
        once: true,
        condition: Some("args.item == \"Apples\"".to_owned()),
        hold_for: Some(Duration::from_secs(3)),
    };
    let plain = Wanted { spec: "*:*@call".to_owned(), ..Wanted::default() };
    let enable = |enabled| Request::Enable { breakpoint: BreakpointId(2), enabled };
    for (line, request) in [
        (
            "break inventory:Inventory.reserve@arrive --scope call --once --ignore 10 --for 3s \
             --if 'args.item == \"Apples\"'",
            Request::Break(set),
        ),
        ("break *:*@call", Request::Break(plain)),
        ("enable 2", enable(true)),
        ("disable 2", enable(false)),
        ("delete 1", Request::Delete(Some(BreakpointId(1)))),
        ("delete --all", Request::Delete(None)),
        ("continue", Request::Continue(Whom::TheOnly)),
        ("continue 3", Request::Continue(Whom::Hold(HoldId(3)))),
        ("continue inventory", Request::Continue(Whom::Process("inventory".to_owned()))),
        ("  continue   --all ", Request::Continue(Whom::All)),
        ("release 2", Request::Release(HoldId(2))),
        ("pause inventory", Request::Pause(Some("inventory".to_owned()))),
        ("pause --all", Request::Pause(None)),
        ("panic", Request::Pause(None)),
        ("stop", Request::Stop),
    ] {
        let mut state = held();
        assert_eq!(run(&mut state, line), [Command::Ask(request.clone())], "{line}");
        assert!(state.overlays.is_empty(), "{line}");

        // Who may only look is told so.
        state.watch_only = true;
        assert_eq!(run(&mut state, line), [], "{line}");
        assert!(said(&state).contains("--watch-only"), "{line}: {}", said(&state));
    }
}

#[test]
fn a_recording_is_looked_at_only() {
    let recording = || {
        let name = "run-1".to_owned();
        State::of_recording(name, EventLog::whole(), Vec::new(), BTreeMap::new())
    };
    for line in ["break *:*@call", "continue --all", "panic", "stop", "delete --all"] {
        let mut state = recording();
        assert_eq!(run(&mut state, line), [], "{line}");
        assert!(said(&state).contains("recording"), "{line}: {}", said(&state));
    }
    let mut state = recording();
    run(&mut state, "holds");
    assert_eq!(state.screen, Screen::Holds);
    assert_eq!(run(&mut state, "quit"), [Command::Quit]);
}

#[test]
fn words_show_what_there_is_to_see() {
    for (line, screen) in [
        ("ps", Screen::Processes),
        ("holds", Screen::Holds),
        ("breaks", Screen::Breakpoints),
        ("events", Screen::Events),
    ] {
        let mut state = held();
        state.watch_only = true;
        state.screen = Screen::Log;
        assert_eq!(run(&mut state, line), []);
        assert_eq!(state.screen, screen);
    }
    let mut state = held();
    press(&mut state, &[Key::Char('6'), Key::Char(' ')]);
    assert!(!state.events_pane.follows());
    run(&mut state, "events -f --only inventory");
    assert!(state.events_pane.follows());
    assert_eq!(state.pane(Screen::Events).filter, "inventory");
    run(&mut state, "events");
    assert_eq!(state.pane(Screen::Events).filter, "");

    for (line, shown) in [
        ("bt 2", About::Hold(HoldId(2))),
        ("why 2", About::Why(HoldId(2))),
        ("watch", About::Watched),
    ] {
        let mut state = held();
        run(&mut state, line);
        match state.overlays.last() {
            Some(Overlay::Detail(Detail { about, .. })) => assert_eq!(*about, shown),
            other => panic!("{line}: {other:?}"),
        }
    }
    let mut state = held();
    state.screen = Screen::Holds;
    run(&mut state, "why");
    assert!(matches!(state.overlays.last(), Some(Overlay::Detail(_))));
    for line in ["help", "break --help"] {
        let mut state = held();
        run(&mut state, line);
        assert!(matches!(state.overlays.last(), Some(Overlay::Help { .. })), "{line}");
    }
    for line in ["quit", "q"] {
        assert_eq!(run(&mut empty(), line), [Command::Quit]);
        let mut state = held();
        assert_eq!(run(&mut state, line), []);
        assert!(matches!(state.overlays.last(), Some(Overlay::Question(_))), "it asks");
    }
}

#[test]
fn what_is_wrong_is_said_in_a_sentence() {
    for (line, says) in [
        ("break", "the following required arguments were not provided: <SPEC>"),
        (
            "break inventory",
            "a breakpoint begins with a process: process:Service.method@event, or *:…",
        ),
        (BREAK, "a breakpoint cannot contain white space or control characters"),
        (
            "break *:*@call --if stock>1",
            "`stock` is not known: a condition sees args, result, watch, process and control",
        ),
        (
            "break *:*@call --scope all",
            "invalid value 'all' for '--scope <SCOPE>' [possible values: process, call]",
        ),
        ("break *:*@call --maybe", "unexpected argument '--maybe' found"),
        ("delete one", "invalid value 'one' for '[ID]': invalid digit found in string"),
        ("continue 1 --all", "the argument '[HOLD|PROCESS]' cannot be used with '--all'"),
        ("break 'inventory", "this line does not end: close the quotes"),
        ("bt 9", "there is no hold 9: `holds` shows who stands still"),
        ("frobnicate", "there is no frobnicate here: `help` shows what there is"),
        ("cont", "there is no cont here: did you mean continue?"),
        ("run --until-fails", "run is not for the screen: use `ddbx run` in a shell"),
        ("wait --hit 1", "wait is not for the screen: use `ddbx wait` in a shell"),
        ("", ""),
    ] {
        let mut state = held();
        state.message = None;
        assert_eq!(run(&mut state, line), [], "{line}");
        assert_eq!(said(&state), says, "{line}");
        assert!(state.overlays.is_empty(), "{line}");
    }
}

fn offered(line: &str) -> Vec<String> {
    words::complete(line, &held().seen)
}

#[test]
fn words_are_completed_and_then_what_they_take() {
    assert_eq!(offered("br"), ["break ", "breaks"]);
    assert_eq!(offered("able"), ["enable ", "disable "]);
    assert_eq!(offered("delete "), ["delete 1", "delete 2", "delete --all"]);
    assert_eq!(offered("enable 2"), [""; 0]);
    assert_eq!(offered("bt "), ["bt 1", "bt 2", "bt 3"]);
    assert_eq!(offered("continue inv"), ["continue inventory"]);
    assert_eq!(offered("continue --"), ["continue --all"]);
    assert_eq!(offered("pause pay"), ["pause payments"]);
    assert_eq!(offered("break inv"), ["break inventory:", "break inventory:inventory.call@arrive"]);
    assert_eq!(offered("break 'inventory:inv"), ["break inventory:inventory.call@arrive"]);
    assert_eq!(
        offered("break inventory:inventory.call@arr"),
        ["break inventory:inventory.call@arrive"]
    );
    let set = "break *:*@call";
    let options = ["--scope", "--if", "--once", "--ignore", "--for"];
    assert_eq!(offered(&format!("{set} ")), options.map(|option| format!("{set} {option}")));
    let without = ["--if", "--ignore", "--for"];
    let set = format!("{set} --once --scope call");
    assert_eq!(offered(&format!("{set} ")), without.map(|option| format!("{set} {option}")));
    assert_eq!(offered("break --scope "), ["break --scope process", "break --scope call"]);
    assert_eq!(offered("break --scope call inv")[0], "break --scope call inventory:");
    assert_eq!(offered("break x --if 'a b"), [""; 0], "an expression is not known");
    assert_eq!(offered("frobnicate "), [""; 0]);
    assert_eq!(offered("events --only gat"), ["events --only gateway"]);
}

/// Whatever a word takes in a place is known here, so nobody has to look it up.
#[test]
fn what_a_word_takes_is_offered() {
    for (usage, about) in words::list() {
        assert!(!about.is_empty(), "{usage}");
        let mut parts = usage.split(' ');
        let word = parts.next().unwrap();
        if parts.any(|part| part.starts_with(['<', '['])) {
            let offers = offered(&format!("{word} "));
            assert!(offers.iter().any(|offer| !offer.contains("--")), "{usage}: {offers:?}");
        }
    }
}

#[test]
fn tab_completes_the_line() {
    let mut state = held();
    types(&mut state, ":del");
    press(&mut state, &[Key::Tab, Key::Tab, Key::Tab]);
    assert_eq!(
        press(&mut state, &[Key::Enter]),
        [Command::Ask(Request::Delete(Some(BreakpointId(2))))]
    );
    types(&mut state, ":continue ");
    press(&mut state, &[Key::Tab, Key::BackTab]);
    let all = Command::Ask(Request::Continue(Whom::All));
    assert_eq!(press(&mut state, &[Key::Enter]), [all]);
}

#[test]
fn it_looks_right() {
    for size in SIZES {
        let mut state = held();
        types(&mut state, ":break ");
        press(&mut state, &[Key::Tab, Key::Tab]);
        insta::assert_snapshot!(format!("words-{}x{}", size.0, size.1), drawn(&mut state, size));
        let mut state = held();
        run(&mut state, "help");
        press(&mut state, &[Key::End]);
        insta::assert_snapshot!(format!("help-{}x{}", size.0, size.1), drawn(&mut state, size));
        let mut state = held();
        run(&mut state, "watch");
        insta::assert_snapshot!(format!("watch-{}x{}", size.0, size.1), drawn(&mut state, size));
    }
}
