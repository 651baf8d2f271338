//! The five situations in which a screen must be useful.

use std::time::Duration;

use ddbx_protocol::control::{
    Backtrace, BreakpointView, CallView, Dropped, FrameView, HoldReason, HoldView, Notice,
    ProcessState, ProcessView, ReplayView, Reply, Request, SessionView, Wanted, WatchView, What,
};
use ddbx_protocol::replay::{AtTurn, Next};
use ddbx_protocol::{
    BreakpointId, CallId, CallPath, ControlId, Delay, DroppedHere, Event, EventId, EventKind,
    EventNumber, HoldId, MethodName, PointLabel, ProcessName, Progress, RealTime, Scope,
};
use ddbx_tui::keys::Key;
use ddbx_tui::state::{Command, State, Update};
use serde_json::json;

/// What a situation is called, and how it comes about.
type Situation = (&'static str, fn() -> State);

pub const SITUATIONS: [Situation; 5] = [
    ("empty", empty),
    ("busy", busy),
    ("held", held),
    ("replay", replay),
    ("disconnected", disconnected),
];

/// The letters of a word, one after the other.
pub fn types(state: &mut State, text: &str) -> Vec<Command> {
    text.chars().flat_map(|letter| state.handle_key(Key::Char(letter))).collect()
}

pub fn press(state: &mut State, keys: &[Key]) -> Vec<Command> {
    keys.iter().flat_map(|key| state.handle_key(*key)).collect()
}

/// The session answers something.
pub fn answers(state: &mut State, request: Request, reply: Reply) {
    state.handle_update(Update::Answer(request, Box::new(reply)));
}

/// A session in which nobody takes part.
pub fn empty() -> State {
    let mut state = State::of_session("shop", false);
    state.handle_update(Update::Up);
    answers(&mut state, Request::Session, Reply::Session(session(0, 0, 0)));
    state
}

/// Calls go to and fro, and nobody is held.
pub fn busy() -> State {
    let mut state = empty();
    answers(&mut state, Request::Session, Reply::Session(session(5, 0, 0)));
    answers(&mut state, Request::Processes, Reply::Processes(processes(1)));
    state.handle_update(Update::Tick(1_000));
    answers(&mut state, Request::Processes, Reply::Processes(processes(2)));
    answers(&mut state, Request::Calls, Reply::Calls(calls(None)));
    answers(&mut state, Request::Breakpoints, Reply::Breakpoints(breakpoints(0)));
    let joined = names().map(|name| notice(10, What::Joined(name.to_owned())));
    state.handle_update(Update::Notices(joined.to_vec()));
    state.handle_update(Update::Notices(traffic()));
    settle(&mut state, 2_000);
    state
}

/// A breakpoint has stopped one, and others wait for it.
pub fn held() -> State {
    let mut state = busy();
    answers(&mut state, Request::Session, Reply::Session(session(5, 1, 2)));
    let mut waiting = processes(3);
    for (view, (what, held, waits)) in waiting.iter_mut().zip([
        (ProcessState::Running, 0, 0),
        (ProcessState::Held, 1, 0),
        (ProcessState::Waiting, 0, 1),
        (ProcessState::Running, 0, 0),
        (ProcessState::Waiting, 0, 1),
    ]) {
        (view.state, view.held, view.waiting) = (what, held, waits);
        view.delay_ms = 1_250 * (held * 2 + waits);
    }
    answers(&mut state, Request::Processes, Reply::Processes(waiting));
    let holds = holds();
    let stands = holds.iter().map(|hold| notice(2_100, What::Stands(hold.clone())));
    state.handle_update(Update::Notices(stands.collect()));
    answers(&mut state, Request::Calls, Reply::Calls(calls(Some(HoldId(1)))));
    answers(&mut state, Request::Breakpoints, Reply::Breakpoints(breakpoints(1)));
    answers(&mut state, Request::Backtrace(HoldId(1)), Reply::Backtrace(backtrace(&holds[0])));
    answers(&mut state, Request::Holds, Reply::Holds(holds));
    let value = WatchView {
        process: "inventory".into(),
        name: "stock".into(),
        value: json!({"apples": 3}),
    };
    answers(&mut state, Request::Watched, Reply::Watched(vec![value]));
    settle(&mut state, 3_000);
    state
}

/// A recording is replayed, and an event waits for its turn.
pub fn replay() -> State {
    let mut state = busy();
    let arrives = EventKind::CallArrived {
        call: call(2, "1.2"),
        method: method("Payments.charge"),
        sent_as: None,
    };
    let waits = EventKind::CallArrived {
        call: call(1, "4.1"),
        method: method("Inventory.reserve"),
        sent_as: None,
    };
    let view = ReplayView {
        process: "inventory".into(),
        start: 1,
        is_there: true,
        progress: Progress {
            done: 41,
            of: 120,
            next: Some(Next {
                number: EventNumber(42),
                kind: arrives,
                took: Duration::from_millis(3),
            }),
            must_end: false,
            lasted: Duration::from_secs(4),
            idle: Duration::from_millis(750),
            waiting: vec![AtTurn { kind: waits, number: Some(EventNumber(45)) }],
            recent: Vec::new(),
            differs: None,
        },
    };
    answers(&mut state, Request::Replay, Reply::Replay(vec![view]));
    state
}

/// The session was there, and is not any more.
pub fn disconnected() -> State {
    let mut state = held();
    state.handle_update(Update::Lost("it closed the connection".to_owned()));
    state.handle_update(Update::Tick(5_500));
    state
}

/// All events that have come are in order.
fn settle(state: &mut State, now_ms: u64) {
    state.handle_update(Update::Tick(now_ms - 500));
    state.handle_update(Update::Tick(now_ms));
}

fn names() -> [&'static str; 5] {
    ["gateway", "inventory", "orders", "payments", "traffic"]
}

fn session(processes: u64, held: u64, waiting: u64) -> SessionView {
    SessionView {
        age_ms: 61_000,
        processes,
        held,
        waiting,
        order_guaranteed: true,
        messages_sent: 12,
        left: 0,
        dropped: Dropped::default(),
    }
}

fn processes(seconds: u64) -> Vec<ProcessView> {
    let view = |(nth, name): (usize, &&str)| {
        let nth = nth as u64 + 1;
        ProcessView {
            name: (*name).to_owned(),
            pid: 4_000 + nth as u32,
            state: ProcessState::Running,
            paused: false,
            clock_ms: 60_000 + seconds as i64 * 1_000,
            delay_ms: 0,
            in_flight: nth % 3,
            served: 80 * nth * seconds,
            made: 40 * nth * seconds,
            held: 0,
            waiting: 0,
            from_outside: 0,
            calls: if nth == 3 { vec!["inventory".into(), "payments".into()] } else { Vec::new() },
            written: None,
            durable: None,
            missing: None,
            dropped: DroppedHere::default(),
            methods: vec![format!("{}.call", name)],
            points: Vec::new(),
        }
    };
    names().iter().enumerate().map(view).collect()
}

pub fn control(nth: u64) -> ControlId {
    ControlId::new(format!("traffic/customer-{nth}")).unwrap()
}

fn call(customer: u64, path: &str) -> CallId {
    let mut numbers = path.split('.').map(|number| number.parse().unwrap());
    let root = CallPath::root(numbers.next().unwrap());
    CallId {
        control: control(customer),
        path: numbers.fold(root, |path, number| path.child(number)),
    }
}

fn method(name: &str) -> MethodName {
    MethodName::new(name).unwrap()
}

fn calls(hold: Option<HoldId>) -> Vec<CallView> {
    let view = |process: &str, of: &str, depth, age_ms, hold| CallView {
        process: process.to_owned(),
        method: method(of),
        control: control(1),
        depth,
        age_ms,
        remaining_ms: Some(2_000 - u64::from(depth) * 10),
        hold,
    };
    vec![
        view("gateway", "Gateway.buy", 1, 53, None),
        view("orders", "Orders.place", 2, 52, None),
        view("inventory", "Inventory.reserve", 3, 50, hold),
    ]
}

fn breakpoints(hits: u64) -> Vec<BreakpointView> {
    let view = |id, spec: &str, enabled| BreakpointView {
        id: BreakpointId(id),
        wanted: Wanted { spec: spec.to_owned(), scope: Scope::Process, ..Wanted::default() },
        enabled,
        processes: if enabled { vec!["inventory".to_owned()] } else { Vec::new() },
        hits: if enabled { hits } else { 0 },
        met: hits,
        spent: false,
        errors: 0,
        last_error: None,
    };
    let mut views = vec![
        view(1, "inventory:Inventory.reserve@arrive", true),
        view(2, "payments:Payments.charge@return", false),
    ];
    views[1].wanted.condition = Some("has(result.Err) && args.amount > 100".to_owned());
    views[1].wanted.scope = Scope::Call;
    views
}

fn holds() -> Vec<HoldView> {
    let hold = |id, process: &str, at: &str, reason, because_of: &[u64]| HoldView {
        id: HoldId(id),
        process: process.to_owned(),
        at: at.to_owned(),
        control: Some(control(id)),
        reason,
        breakpoint: None,
        because_of: because_of.iter().map(|id| HoldId(*id)).collect(),
        held_ms: 2_512 - id * 3,
        at_least_ms: None,
        args: None,
        result: None,
    };
    let mut holds = vec![
        hold(1, "inventory", "Inventory.reserve@arrive", HoldReason::Breakpoint, &[]),
        hold(2, "orders", "Payments.authorise@call", HoldReason::Delay, &[1]),
        hold(3, "traffic", "sleep", HoldReason::Delay, &[2, 1]),
    ];
    holds[0].breakpoint = Some(BreakpointId(1));
    holds[0].args = Some(json!({"item": "Apples", "number": 2}));
    holds[1].at_least_ms = Some(14);
    holds
}

fn backtrace(hold: &HoldView) -> Backtrace {
    let frame = |process: &str, of: Option<&str>, age_ms| FrameView {
        process: process.to_owned(),
        method: of.map(method),
        age_ms,
        remaining_ms: age_ms.map(|age| 2_000 - age),
    };
    let frames = vec![
        frame("inventory", Some("Inventory.reserve"), Some(50)),
        frame("orders", Some("Orders.place"), Some(52)),
        frame("gateway", Some("Gateway.buy"), Some(53)),
        frame("traffic", None, None),
    ];
    Backtrace { hold: hold.clone(), frames }
}

pub fn notice(at_ms: u64, what: What) -> Notice {
    Notice { at_ms, what }
}

/// A customer buys something: calls through three processes, with a point and a deadline.
fn traffic() -> Vec<Notice> {
    let mut events = Vec::new();
    let mut numbers = [0; 5];
    let mut happens = |process: usize, at_micros: i64, kind: EventKind| {
        numbers[process] += 1;
        let name = ProcessName::new(names()[process]).unwrap();
        let id = EventId { process: name, number: EventNumber(numbers[process]) };
        let at = RealTime::from_nanos(at_micros * 1_000);
        events.push(Event { id: id.clone(), at, delay: Delay::ZERO, kind });
        Some(id)
    };
    let sent =
        |call: CallId, of: &str| EventKind::CallSent { call, method: method(of), content: 0 };
    let arrived = |call: CallId, of: &str, sent_as| EventKind::CallArrived {
        call,
        method: method(of),
        sent_as,
    };
    let returned = |call: CallId, sent_as| EventKind::ReturnArrived { call, sent_as };
    let (outer, middle, inner, late) =
        (call(1, "1"), call(1, "1.1"), call(1, "1.1.1"), call(1, "1.1.2"));
    let a = happens(4, 1_000_000, sent(outer.clone(), "Gateway.buy"));
    happens(0, 1_000_400, arrived(outer.clone(), "Gateway.buy", a));
    let b = happens(0, 1_000_700, sent(middle.clone(), "Orders.place"));
    happens(2, 1_001_100, arrived(middle.clone(), "Orders.place", b));
    let c = happens(2, 1_001_400, sent(inner.clone(), "Inventory.reserve"));
    happens(1, 1_001_900, arrived(inner.clone(), "Inventory.reserve", c));
    let label = PointLabel::new("stock").unwrap();
    happens(
        1,
        1_002_400,
        EventKind::Point { control: control(1), call: Some(inner.path.clone()), label },
    );
    let d = happens(1, 1_003_000, EventKind::ReturnSent { call: inner.clone() });
    happens(2, 1_003_500, returned(inner, d));
    let e = happens(2, 1_003_800, sent(late.clone(), "Payments.charge"));
    happens(3, 1_004_200, arrived(late.clone(), "Payments.charge", e));
    happens(
        2,
        1_009_000,
        EventKind::DeadlineExpired { call: late, end: ddbx_protocol::End::Caller },
    );
    let f = happens(2, 1_009_400, EventKind::ReturnSent { call: middle.clone() });
    happens(0, 1_009_900, returned(middle, f));
    let g = happens(0, 1_010_200, EventKind::ReturnSent { call: outer.clone() });
    happens(4, 1_010_700, returned(outer, g));
    events.into_iter().map(|event| notice(1_050, What::Event(event))).collect()
}
