//! The form for breakpoints: what keys do to it, what it offers, what comes out, and what it
//! looks like.

use std::time::Duration;

use ddbx_protocol::control::{BreakpointView, ProcessState, ProcessView, Reply, Request, Wanted};
use ddbx_protocol::{BreakpointId, DroppedHere, Scope};
use ddbx_tui::keys::Key;
use ddbx_tui::state::form::{BreakForm, Content, Field};
use ddbx_tui::state::overlay::Overlay;
use ddbx_tui::state::{Command, Screen, State, Update, places};
use ddbx_tui::text::width;

use crate::fixtures::{press, types};
use crate::snapshots::{SIZES, drawn, terminal};

fn process(name: &str, methods: &[&str], points: &[&str], calls: &[&str]) -> ProcessView {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    ProcessView {
        name: name.to_owned(),
        pid: 7,
        state: ProcessState::Running,
        paused: false,
        clock_ms: 1_000,
        delay_ms: 0,
        in_flight: 0,
        served: 0,
        made: 0,
        held: 0,
        waiting: 0,
        from_outside: 0,
        calls: owned(calls),
        methods: owned(methods),
        points: owned(points),
        written: None,
        durable: None,
        missing: None,
        dropped: DroppedHere::default(),
    }
}

fn shop() -> Vec<ProcessView> {
    let inventory = ["Inventory.release", "Inventory.reserve"];
    vec![
        process("gateway", &[], &[], &["orders"]),
        process("inventory", &inventory, &["reserve", "last (item)"], &["registry"]),
        process("inventory#2", &inventory, &["reserve"], &["registry"]),
        process("orders", &["Orders.place"], &["placed"], &["inventory", "payments"]),
        process("payments", &["Payments.charge"], &[], &[]),
    ]
}

/// A session of these, which answers.
fn session(processes: Vec<ProcessView>) -> State {
    let mut state = State::of_session("shop", false);
    state.handle_update(Update::Up);
    state.handle_update(Update::Answer(Request::Processes, Box::new(Reply::Processes(processes))));
    state.screen = Screen::Breakpoints;
    state
}

fn form(state: &State) -> &BreakForm {
    match state.overlays.last() {
        Some(Overlay::Form(form)) => form,
        other => panic!("no form but {other:?}"),
    }
}

fn text(state: &State, field: Field) -> String {
    match form(state).content(field) {
        Content::Text(typed) => typed.text().to_owned(),
        Content::Choice(choices, chosen) => choices[chosen].to_owned(),
    }
}

/// A form for a new breakpoint with this place.
fn typed(place: &str) -> State {
    let mut state = session(shop());
    assert_eq!(press(&mut state, &[Key::Char('b')]), []);
    assert_eq!(types(&mut state, place), []);
    state
}

const PLACE: &str = "inventory:Inventory.reserve@arrive";

#[test]
fn a_breakpoint_is_set_with_all_that_is_filled_in() {
    let mut state = typed(PLACE);
    press(&mut state, &[Key::Down]);
    types(&mut state, "args.item == \"Apples\"");
    press(&mut state, &[Key::Tab, Key::Char(' '), Key::Tab, Key::Right, Key::Tab]);
    types(&mut state, "10");
    press(&mut state, &[Key::Tab]);
    types(&mut state, "1m 3s");
    let wanted = Wanted {
        spec: PLACE.to_owned(),
        scope: Scope::Call,
        ignore: 10,
        once: true,
        condition: Some("args.item == \"Apples\"".to_owned()),
        hold_for: Some(Duration::from_secs(63)),
    };
    let asked = press(&mut state, &[Key::Enter]);
    assert_eq!(asked, [Command::Ask(Request::Break(wanted.clone()))]);
    assert_eq!(press(&mut state, &[Key::Enter]), [], "it is asked only once");

    let request = Request::Break(wanted);
    let refused = Reply::Refused("there are too many breakpoints".to_owned());
    state.handle_update(Update::Answer(request.clone(), Box::new(refused)));
    assert_eq!(form(&state).refusal(), Some("there are too many breakpoints"));
    assert_eq!(press(&mut state, &[Key::Enter]), [Command::Ask(request.clone())]);
    let view = view_of(3, Wanted::default());
    state.handle_update(Update::Answer(request, Box::new(Reply::Breakpoint(view))));
    assert!(state.overlays.is_empty(), "it is set");
}

#[test]
fn what_is_left_out_means_always_everybody_and_until_told() {
    let mut state = typed("*:*@call");
    let wanted = Wanted { spec: "*:*@call".to_owned(), ..Wanted::default() };
    assert_eq!(press(&mut state, &[Key::Enter]), [Command::Ask(Request::Break(wanted))]);
}

fn view_of(id: u32, wanted: Wanted) -> BreakpointView {
    BreakpointView {
        id: BreakpointId(id),
        wanted,
        enabled: true,
        processes: vec!["inventory".to_owned()],
        hits: 2,
        met: 3,
        spent: false,
        errors: 0,
        last_error: None,
    }
}

#[test]
fn a_breakpoint_is_changed() {
    let wanted = Wanted {
        spec: PLACE.to_owned(),
        scope: Scope::Call,
        ignore: 4,
        once: true,
        condition: Some("args.item == 1".to_owned()),
        hold_for: Some(Duration::from_millis(90_500)),
    };
    let mut state = session(shop());
    let views = Reply::Breakpoints(vec![view_of(5, wanted.clone())]);
    state.handle_update(Update::Answer(Request::Breakpoints, Box::new(views)));
    press(&mut state, &[Key::Char('e')]);
    let same = Request::Change { breakpoint: BreakpointId(5), wanted: wanted.clone() };
    assert_eq!(press(&mut state, &[Key::Enter]), [Command::Ask(same)]);

    // Backwards to the last field, and to `if`.
    press(&mut state, &[Key::BackTab, Key::Ctrl('u'), Key::Up, Key::Backspace]);
    press(&mut state, &[Key::Up, Key::Left, Key::Up, Key::Char(' '), Key::Up, Key::Ctrl('u')]);
    let changed = Wanted { spec: PLACE.to_owned(), ..Wanted::default() };
    let change = Request::Change { breakpoint: BreakpointId(5), wanted: changed };
    assert_eq!(press(&mut state, &[Key::Enter]), [Command::Ask(change)]);
}

#[test]
fn nothing_is_asked_while_something_is_wrong() {
    let wrong = |field: Field, texts: &[&str]| {
        for wrong in texts {
            let mut state = typed(PLACE);
            let downs = Field::ALL.iter().position(|each| *each == field).unwrap();
            press(&mut state, &vec![Key::Down; downs]);
            press(&mut state, &[Key::Ctrl('u')]);
            types(&mut state, wrong);
            press(&mut state, &[Key::Up, Key::Enter]);
            assert_eq!(press(&mut state, &[Key::Enter]), [], "{wrong}");
            assert_eq!(form(&state).focus(), field, "{wrong}");
            assert!(form(&state).fault(field).is_some(), "{wrong}");
        }
    };
    wrong(Field::Where, &["", "inventory", "inventory:Inventory.reserve@sometimes", "a b:*@call"]);
    wrong(Field::If, &["args.item ==", "stock > 1", "'open"]);
    wrong(Field::Ignore, &["-1", "many", "5000000000"]);
    wrong(Field::LetGo, &["3", "soon", "3 parsecs"]);
}

#[test]
fn faults_have_their_place() {
    let fault = |state: &State, field| form(state).fault(field).cloned();
    let mut state = session(shop());
    press(&mut state, &[Key::Char('b')]);
    assert_eq!(fault(&state, Field::Where), None, "nothing was typed");
    types(&mut state, "在庫:Shop.buy@sell");
    let of_place = fault(&state, Field::Where).unwrap();
    assert_eq!(of_place.at, Some("在庫:Shop.buy@".chars().count()));
    assert_eq!(of_place.what, "the events are call, arrive, return and resume, or * for all");
    press(&mut state, &[Key::Down]);
    types(&mut state, "args.item == 1 && stock > 2");
    let of_condition = fault(&state, Field::If).unwrap();
    assert_eq!(of_condition.at, Some("args.item == 1 && ".len()));
    assert!(of_condition.what.contains("`stock` is not known"), "{of_condition:?}");
    press(&mut state, &[Key::Ctrl('u')]);
    assert_eq!(fault(&state, Field::If), None);
}

fn offered(place: &str) -> Vec<String> {
    places::complete(place, &session(shop()).seen)
}

#[test]
fn places_are_offered_part_by_part() {
    let processes =
        ["gateway:", "inventory:", "inventory#1:", "inventory#2:", "orders:", "payments:", "*:"];
    assert_eq!(offered(""), processes);
    assert_eq!(offered("PAY"), ["payments:", "payments:Payments.charge@arrive"]);
    assert_eq!(offered("tory#"), ["inventory#1:", "inventory#2:"]);
    assert_eq!(offered("orders#"), ["orders#1:"]);
    let of_inventory = [
        "inventory:Inventory.release@arrive",
        "inventory:Inventory.reserve@arrive",
        "inventory:point(last**item*)",
        "inventory:point(reserve)",
        "inventory:*@arrive",
        "inventory:point(*)",
    ];
    assert_eq!(offered("inventory:"), of_inventory);
    let reserves = ["inventory#2:Inventory.reserve@arrive", "inventory#2:point(reserve)"];
    assert_eq!(offered("inventory#2:RESERVE"), reserves);
    assert_eq!(offered("*:pl"), ["*:Orders.place@arrive", "*:point(placed)"]);
    let events = ["arrive", "return", "call", "resume", "*"];
    let events = events.map(|event| format!("inventory:Inventory.reserve@{event}"));
    assert_eq!(offered("inventory:Inventory.reserve@"), events);
    assert_eq!(offered("inventory:Inventory.reserve@arr"), events[..1]);
    assert_eq!(offered(PLACE), [""; 0]);
    assert_eq!(offered("nobody:"), ["nobody:*@arrive", "nobody:point(*)"]);
}

#[test]
fn callers_are_offered_what_they_call() {
    let calls = "orders:Inventory.reserve@";
    assert!(offered("orders:").contains(&format!("{calls}call")));
    assert_eq!(offered(calls)[..2], ["call", "resume"].map(|event| format!("{calls}{event}")));
}

#[test]
fn whole_places_are_offered_by_a_part_of_their_name() {
    let places = ["inventory:Inventory.reserve@arrive", "inventory:point(reserve)"];
    assert_eq!(offered("reserve"), places);
    let mut state = typed("reserve");
    press(&mut state, &[Key::Tab]);
    let wanted = Wanted { spec: PLACE.to_owned(), ..Wanted::default() };
    assert_eq!(press(&mut state, &[Key::Enter]), [Command::Ask(Request::Break(wanted))]);
}

#[test]
fn what_is_offered_can_all_be_set() {
    let mut open = vec![String::new(), "e".to_owned(), "*".to_owned()];
    let mut whole = 0;
    while let Some(place) = open.pop() {
        let offers = offered(&place);
        if offers.is_empty() {
            place.parse::<ddbx_protocol::Spec>().unwrap();
            whole += 1;
        }
        open.extend(offers.into_iter().filter(|offer| !offer.ends_with("@*")));
    }
    assert!(whole > 50, "{whole}");
}

#[test]
fn tab_goes_through_what_is_offered_and_then_on() {
    let mut state = typed("inv");
    press(&mut state, &[Key::Tab]);
    assert_eq!(text(&state, Field::Where), "inventory:");
    press(&mut state, &[Key::Tab, Key::Tab]);
    assert_eq!(text(&state, Field::Where), "inventory#2:");
    press(&mut state, &[Key::BackTab, Key::BackTab]);
    assert_eq!(text(&state, Field::Where), "inventory:");
    // The arrow takes it, and the next Tab goes on from there.
    press(&mut state, &[Key::Right, Key::Tab]);
    assert_eq!(text(&state, Field::Where), "inventory:Inventory.release@arrive");
    press(&mut state, &[Key::Ctrl('u')]);
    types(&mut state, "inv");
    press(&mut state, &[Key::Tab]);
    // Enter takes it too, as long as it is not a whole place.
    assert_eq!(press(&mut state, &[Key::Enter, Key::Tab]), []);
    assert_eq!(text(&state, Field::Where), "inventory:Inventory.release@arrive");
    press(&mut state, &[Key::Ctrl('u')]);
    types(&mut state, "payments:charge");
    press(&mut state, &[Key::Tab, Key::Ctrl('w')]);
    types(&mut state, "ret");
    press(&mut state, &[Key::Tab]);
    assert_eq!(text(&state, Field::Where), "payments:Payments.charge@return");
    assert_eq!(form(&state).focus(), Field::Where);
    press(&mut state, &[Key::Tab]);
    assert_eq!(form(&state).focus(), Field::If, "there is nothing more to complete");
}

#[test]
fn a_place_that_is_known_in_part_is_completed() {
    let mut state = session(shop());
    state.screen = Screen::Processes;
    press(&mut state, &[Key::Char('G'), Key::Char('b')]);
    assert_eq!(text(&state, Field::Where), "payments:");
    press(&mut state, &[Key::Tab]);
    assert_eq!(text(&state, Field::Where), "payments:Payments.charge@arrive");
}

#[test]
fn escape_closes_it_and_nothing_is_asked() {
    let mut state = typed(PLACE);
    assert_eq!(press(&mut state, &[Key::Esc]), []);
    assert!(state.overlays.is_empty());
}

#[test]
fn a_session_that_is_gone_is_not_asked() {
    let mut state = typed(PLACE);
    state.handle_update(Update::Lost("it closed the connection".to_owned()));
    assert_eq!(press(&mut state, &[Key::Enter]), []);
    assert!(form(&state).refusal().is_some());
    state.handle_update(Update::Up);
    assert_eq!(press(&mut state, &[Key::Enter]).len(), 1, "it can be tried again");
    state.handle_update(Update::Lost("it closed the connection".to_owned()));
    assert!(form(&state).refusal().is_some() && !form(&state).is_asked());
}

/// At both sizes.
fn snapshot(name: &str, mut state: State) {
    for size in SIZES {
        let name = format!("{name}-{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, drawn(&mut state, size));
    }
}

#[test]
fn it_looks_right() {
    snapshot("empty", typed(""));
    snapshot("offers", typed("inventory:re"));
    let mut chosen = typed("e");
    press(&mut chosen, &[Key::Tab; 6]);
    snapshot("chosen", chosen);
    snapshot("fault-in-place", typed("inventory:Inventory.reserve@sometimes"));
    let mut condition = typed(PLACE);
    press(&mut condition, &[Key::Down]);
    types(&mut condition, "args.item == \"Apples\" && stock_left < 3");
    snapshot("fault-in-condition", condition);
    let mut refused = typed(PLACE);
    press(&mut refused, &[Key::Up, Key::Up, Key::Up, Key::Up, Key::Char(' '), Key::Enter]);
    let Command::Ask(request) = press(&mut refused, &[Key::Char(' '), Key::Enter]).remove(0) else {
        panic!("nothing was asked");
    };
    let why = "there are 1000 breakpoints, which is the most: remove one".to_owned();
    refused.handle_update(Update::Answer(request, Box::new(Reply::Refused(why))));
    snapshot("refused", refused);
}

#[test]
fn it_works_on_the_smallest_screen() {
    let mut state = typed("inventory:re");
    insta::assert_snapshot!("smallest-offers", drawn(&mut state, (60, 12)));
    press(&mut state, &[Key::Up]);
    types(&mut state, "soon");
    insta::assert_snapshot!("smallest-last-field", drawn(&mut state, (60, 12)));
}

/// What is drawn, and where the cursor is in it.
fn with_cursor(state: &mut State, size: (u16, u16)) -> (String, usize, usize) {
    let mut terminal = terminal(state, size);
    let cursor = terminal.get_cursor_position().unwrap();
    (terminal.backend().to_string(), usize::from(cursor.x), usize::from(cursor.y))
}

#[test]
fn the_cursor_is_where_the_next_character_goes() {
    for place in ["", "inventory:", "注文:注文.処理@"] {
        let (screen, x, y) = with_cursor(&mut typed(place), (80, 24));
        assert!(screen.lines().nth(y).unwrap().contains("› where"), "{screen}");
        // Behind the frame, the titles and what is typed.
        assert_eq!(x, 2 + 15 + width(place), "{screen}");
    }
    // A text that is longer than the field moves in it, and back with the cursor.
    let long = format!("{}:Inventory.reserve@arrive", "処理".repeat(40));
    let mut state = typed(&long);
    for _ in 0..long.chars().count() {
        let (screen, x, y) = with_cursor(&mut state, (60, 12));
        assert!(x < 58, "{screen}");
        let before = match form(&state).content(Field::Where) {
            Content::Text(typed) => typed.halves().0.chars().last(),
            Content::Choice(..) => None,
        };
        let row = screen.lines().nth(y).unwrap();
        assert!(before.is_none_or(|character| row.contains(character)), "{before:?} {screen}");
        press(&mut state, &[Key::Left]);
    }
    types(&mut state, "x");
    assert!(text(&state, Field::Where).starts_with('x'));
}
