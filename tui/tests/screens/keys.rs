//! What `?` says is what keys do.

use std::collections::BTreeSet;

use ddbx_protocol::HoldId;
use ddbx_protocol::control::{HoldReason, Reply, Request, Whom};
use ddbx_tui::keys::{Action, Key, bindings};
use ddbx_tui::state::{Command, Screen, State};

use crate::fixtures::{SITUATIONS, answers, busy, disconnected, held, press, types};
use crate::snapshots::drawn;

const SIZE: (u16, u16) = (120, 60);

/// Each key of the help does something on each screen, and no other key does anything.
#[test]
fn the_help_says_what_keys_do() {
    for screen in 1..=7 {
        let on_screen = || {
            let mut state = held();
            types(&mut state, &screen.to_string());
            // Something to go down to, and up from.
            press(&mut state, &[Key::Down]);
            state
        };
        let mut state = on_screen();
        let before = drawn(&mut state, SIZE);
        let mut bound = BTreeSet::new();
        types(&mut state, "?");
        let help = drawn(&mut state, SIZE);
        for binding in bindings(Screen::ALL[screen - 1], false) {
            assert!(help.contains(binding.help), "{help}");
            let mut does = false;
            for (key, action) in binding.keys {
                assert!(bound.insert(format!("{key:?}")), "{key} is bound twice");
                assert!(help.contains(&key.to_string()), "{key} is not in the help:\n{help}");
                let mut state = on_screen();
                let commands = state.handle_key(*key);
                does |= !commands.is_empty() || drawn(&mut state, SIZE) != before;
                // Where there is nothing more in a direction, or nothing to close.
                does |= matches!(action, Action::Page(_) | Action::Back | Action::Find(_));
            }
            assert!(does, "{:?} do nothing on screen {screen}", binding.keys);
        }
        for letter in
            (' '..='~').map(Key::Char).chain([Key::Backspace, Key::Delete, Key::Ctrl('x')])
        {
            if !bound.contains(&format!("{letter:?}")) {
                let mut state = on_screen();
                assert_eq!(state.handle_key(letter), [], "{letter} is not in the help");
                assert_eq!(drawn(&mut state, SIZE), before, "{letter} is not in the help");
            }
        }
    }
}

fn asked(commands: &[Command]) -> &Request {
    match commands {
        [Command::Ask(request)] => request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_action_is_a_key_away() {
    let continues = |whom| Request::Continue(whom);
    assert_eq!(asked(&types(&mut held(), "2c")), &continues(Whom::Hold(HoldId(1))));
    assert_eq!(asked(&types(&mut held(), "C")), &continues(Whom::All));
    assert_eq!(asked(&types(&mut held(), "1jc")), &continues(Whom::Process("inventory".into())));
    assert_eq!(asked(&types(&mut held(), "1jp")), &Request::Pause(Some("inventory".into())));
    assert_eq!(asked(&types(&mut held(), "P")), &Request::Pause(None));
    let enable = Request::Enable { breakpoint: ddbx_protocol::BreakpointId(2), enabled: true };
    assert_eq!(asked(&types(&mut held(), "4j ")), &enable);
    let delete = Request::Delete(Some(ddbx_protocol::BreakpointId(1)));
    assert_eq!(asked(&types(&mut held(), "4d")), &delete);
    // This one asks first.
    let mut state = held();
    assert_eq!(types(&mut state, "2jr"), []);
    assert_eq!(types(&mut state, "n"), []);
    types(&mut state, "r");
    assert_eq!(asked(&types(&mut state, "y")), &Request::Release(HoldId(2)));
}

/// Who is halted with its process goes on with what halted that.
#[test]
fn whoever_halts_a_process_goes_on() {
    let halted = |is_paused: bool| {
        let mut state = held();
        let mut holds = state.seen.holds.clone();
        (holds[1].process, holds[1].reason) = ("inventory".to_owned(), HoldReason::Halt);
        holds[1].because_of.clear();
        let mut processes = state.seen.processes.clone();
        processes[1].paused = is_paused;
        answers(&mut state, Request::Holds, Reply::Holds(holds));
        answers(&mut state, Request::Processes, Reply::Processes(processes));
        types(&mut state, "2j");
        state
    };
    let mut state = halted(false);
    assert!(drawn(&mut state, SIZE).contains("hold 1 halts it"));
    assert_eq!(asked(&types(&mut state, "c")), &Request::Continue(Whom::Hold(HoldId(1))));
    let mut state = halted(true);
    assert!(drawn(&mut state, SIZE).contains("paused"));
    let all = Whom::Process("inventory".to_owned());
    assert_eq!(asked(&types(&mut state, "c")), &Request::Continue(all));
}

/// A call that waits for another one stands where that stands.
#[test]
fn why_follows_the_calls_of_a_control() {
    let mut state = held();
    types(&mut state, "3w");
    assert!(drawn(&mut state, SIZE).contains("why hold 1 stands still"));
}

/// In the words of the screen, and without asking the session.
#[test]
fn where_nobody_is_held_nobody_goes_on() {
    for on in ["2", "3", "4", "6"] {
        let mut state = busy();
        assert_eq!(types(&mut state, &format!("{on}c")), []);
        let said = "nobody is held: b sets a breakpoint, p holds a process";
        assert!(drawn(&mut state, SIZE).contains(said));
    }
}

#[test]
fn quitting_asks_only_if_somebody_is_held() {
    assert_eq!(types(&mut busy(), "q"), [Command::Quit]);
    assert_eq!(types(&mut disconnected(), "q"), [Command::Quit]);
    let all = [Command::Ask(Request::Continue(Whom::All)), Command::Quit];
    for (answer, does) in [("c", &all[..]), ("l", &all[1..]), ("n", &[])] {
        let mut state = held();
        assert_eq!(types(&mut state, "q"), []);
        assert_eq!(types(&mut state, answer), does);
    }
    assert_eq!(press(&mut held(), &[Key::Ctrl('c'), Key::Esc]), []);
}

#[test]
fn who_only_looks_changes_nothing() {
    for (situation, state) in SITUATIONS {
        for screen in 1..=7 {
            for binding in bindings(Screen::ALL[screen - 1], false) {
                for (key, _) in binding.keys {
                    let mut state: State = state();
                    state.watch_only = true;
                    types(&mut state, &screen.to_string());
                    let commands = press(&mut state, &[*key, Key::Char('y'), Key::Enter]);
                    let changes = |command: &Command| matches!(command, Command::Ask(_));
                    assert!(
                        !commands.iter().any(changes),
                        "{situation} {screen} {key}: {commands:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_filter_shows_only_what_has_its_text() {
    let mut state = busy();
    types(&mut state, "/GATE");
    let shown = drawn(&mut state, SIZE);
    assert!(shown.contains("gateway") && !shown.contains("payments "), "{shown}");
    press(&mut state, &[Key::Enter]);
    assert!(drawn(&mut state, SIZE).contains("1 of 1 with /GATE; Esc shows all"));
    press(&mut state, &[Key::Esc]);
    assert!(drawn(&mut state, SIZE).contains("payments "));
}
