//! Messages of every kind: what mutations begin with. And the heaviest: those of which a
//! byte takes the most memory.

use std::time::Duration;

use ddbx_protocol::attach::{COUNTS_MAX, EVENTS_MAX, WATCHED_MAX};
use ddbx_protocol::control::{
    Backtrace, BreakpointView, CALLS_MAX, CallView, Dropped, FrameView, HoldReason, HoldView,
    NAMES_MAX, Notice, ProcessState, ProcessView, ReplayView, Reply, Request, SessionView, Wanted,
    WatchView, What, Whom,
};
use ddbx_protocol::replay::{AtTurn, Differs, Next};
use ddbx_protocol::session::TIMED_MAX;
use ddbx_protocol::{
    Attach, Breakpoint, BreakpointId, CallId, CallPath, Condition, ConnectionId, ControlId, Count,
    Delay, DroppedHere, End, Event, EventId, EventKind, EventNumber, FromCentral, FromSatellite,
    Gate, HoldId, InFlight, MethodName, Mode, Names, Open, Pattern, Permit, Place, PointLabel,
    ProcessIndex, ProcessKey, ProcessName, Progress, RealTime, RecordedSoFar, RpcEvent, Scope,
    Shared, Stack, Standing, Status, StopId, StopReason, Timed, ToCentral, ToSatellite,
    VirtualTime,
};
use serde_json::json;

use super::DIALLED_BYTES_MAX;
use super::link::binary;

fn process() -> ProcessName {
    ProcessName::new("inventory#2").expect("a name")
}

fn control() -> ControlId {
    ControlId::root(&process(), "main").expect("a name")
}

fn method() -> MethodName {
    MethodName::new("Inventory.reserve").expect("a name")
}

fn label() -> PointLabel {
    PointLabel::new("last-item").expect("a name")
}

fn call() -> CallId {
    CallId { control: control(), path: CallPath::root(3).child(1) }
}

fn event_id() -> EventId {
    EventId { process: process(), number: EventNumber(17) }
}

fn stack() -> Stack {
    Stack::home(ProcessIndex(1)).call(ProcessIndex(u64::MAX))
}

fn connection() -> ConnectionId {
    ConnectionId { client: process(), nth: 2 }
}

/// An event of every kind.
pub(super) fn kinds() -> Vec<EventKind> {
    let (control, sent_as) = (control(), Some(event_id()));
    let path = || Some(call().path);
    vec![
        EventKind::CallSent { call: call(), method: method(), content: 7 },
        EventKind::CallArrived { call: call(), method: method(), sent_as: sent_as.clone() },
        EventKind::ReturnSent { call: call() },
        EventKind::ReturnArrived { call: call(), sent_as },
        EventKind::DeadlineExpired { call: call(), end: End::Caller },
        EventKind::Cancelled { call: call(), end: End::Callee },
        EventKind::Spawned { control: control.clone(), by: Some(control.clone()) },
        EventKind::Ended { control: control.clone() },
        EventKind::Point { control: control.clone(), call: path(), label: label() },
        EventKind::Fired { control: control.clone(), call: None, timer: 4 },
        EventKind::Entered {
            control: control.clone(),
            call: path(),
            nth: 9,
            what: Shared::Message,
            from: Some(control),
        },
        EventKind::Connected { connection: connection() },
        EventKind::Accepted { connection: connection(), sent_as: event_id() },
        EventKind::Closed { connection: connection() },
    ]
}

fn events() -> Vec<Event> {
    let event = |(number, kind)| Event {
        id: EventId { process: process(), number: EventNumber(number) },
        at: RealTime::from_nanos(1_000 * number as i64),
        delay: Delay::from_nanos(5),
        kind,
    };
    (1..).zip(kinds()).map(event).collect()
}

fn progress() -> Progress {
    let kind = || kinds().swap_remove(0);
    let number = EventNumber(5);
    Progress {
        done: 4,
        of: 9,
        next: Some(Next { number, kind: kind(), took: Duration::from_millis(3) }),
        must_end: false,
        lasted: Duration::from_secs(2),
        idle: Duration::from_millis(700),
        waiting: vec![AtTurn { kind: kind(), number: Some(number) }],
        recent: vec![(EventNumber(4), kind())],
        differs: Some(Differs { number, expected: kind(), actual: kind() }),
    }
}

fn in_flight() -> InFlight {
    InFlight {
        control: control(),
        method: method(),
        depth: 2,
        age: Duration::from_millis(15),
        delay: Delay::from_nanos(9),
        due: VirtualTime::from_nanos(-4),
        now: RealTime::from_nanos(1 << 40),
    }
}

fn status() -> Status {
    let error = Some("there is no field \"qty\"".to_owned());
    Status {
        in_flight: 1,
        served: 200,
        made: 3,
        from_outside: 4,
        breakpoints: vec![Count { breakpoint: BreakpointId(1), met: 3, errors: 1, error }],
        watched: vec![("left".to_owned(), "[1,{\"a\":null}]".to_owned())],
        recorded: Some(RecordedSoFar {
            written: EventNumber(9),
            durable: EventNumber(8),
            missing: 0,
            bytes: 4096,
        }),
        dropped: DroppedHere { events: 1, names: 2, watched: 3, peers: 4 },
    }
}

/// What satellites say.
pub(super) fn from_satellite() -> Vec<FromSatellite> {
    let (clock, sent) = (VirtualTime::from_nanos(-5), RealTime::from_nanos(1 << 33));
    let gates = [
        Gate::Rpc(RpcEvent::Arrive, method()),
        Gate::Point(label()),
        Gate::Cancel,
        Gate::Deadline,
        Gate::Sleep,
        Gate::Spawn,
        Gate::Sync,
    ];
    let reasons = [
        StopReason::Breakpoint(BreakpointId(1)),
        StopReason::Process,
        StopReason::Delay,
        StopReason::Inside,
    ];
    let mut messages = vec![FromSatellite::Attach(Attach {
        process: ProcessIndex(1 << 50),
        name: process(),
        own_name: Some(process()),
        pid: 4711,
        key: key(),
    })];
    messages.extend((1..).zip(gates).map(|(number, gate)| FromSatellite::Stands {
        number,
        standing: Standing {
            gate,
            control: control(),
            args: Some("{\"item\":\"tea\"}".to_owned()),
            result: None,
            awaited: Some(BreakpointId(1)),
        },
    }));
    let stopped =
        |(number, reason)| ToCentral::Stopped { number, reason, stack: stack(), clock, sent };
    let mut says: Vec<_> = (1..).zip(reasons).map(stopped).collect();
    says.extend([
        ToCentral::Gone { number: 1, delay: Delay::from_nanos(7) },
        ToCentral::Raised { floor: Delay::from_nanos(u64::MAX) },
        ToCentral::Connected { to: ProcessIndex(3) },
        ToCentral::Accepted { from: ProcessIndex(4) },
        ToCentral::Ask { number: 5, stack: stack(), delay: Some(Delay::ZERO), sent },
    ]);
    messages.extend(says.into_iter().map(FromSatellite::Says));
    messages.extend([
        FromSatellite::Status(status()),
        FromSatellite::Names(Names { methods: vec![method()], points: vec![label()] }),
        FromSatellite::Calls { query: 1, calls: vec![in_flight(), in_flight()] },
        FromSatellite::Events { events: events(), dropped: 3 },
        FromSatellite::Replays(Box::new(progress())),
        FromSatellite::Settled { query: 2 },
    ]);
    messages
}

fn permit() -> Permit {
    let by = StopId { process: ProcessIndex(3), number: 4 };
    let clock = VirtualTime::from_nanos(7);
    Permit {
        sent: RealTime::from_nanos(1 << 33),
        floor: Delay::from_nanos(3),
        open: Some(Open { clock, by }),
        timed: vec![Timed { clock, leaves_with: Delay::from_nanos(9), by }],
    }
}

fn breakpoint(place: Place) -> Breakpoint {
    Breakpoint {
        id: BreakpointId(1),
        place,
        scope: Scope::Call,
        ignore: 2,
        once: true,
        condition: Condition::check("args.qty > 3 && process == 'inventory'").ok(),
    }
}

/// What central says to satellites.
pub(super) fn from_central() -> Vec<FromCentral> {
    let method = Pattern::from("World.*");
    let label = Pattern::from("*");
    let says = [
        ToSatellite::Permit(permit()),
        ToSatellite::Vanished { permit: permit() },
        ToSatellite::Continue { number: 1 },
        ToSatellite::Force { number: 2 },
        ToSatellite::Pass { number: 3 },
        ToSatellite::Pause(true),
        ToSatellite::Plant(breakpoint(Place::Rpc { event: Some(RpcEvent::Call), method })),
        ToSatellite::Plant(breakpoint(Place::Point { label })),
        ToSatellite::Remove(BreakpointId(1)),
        ToSatellite::Granted { number: 1, delay: Delay::from_nanos(5) },
    ];
    let mut messages = vec![
        FromCentral::Welcome { name: process(), start: 2, mode: Mode::Ask },
        FromCentral::Ready,
        FromCentral::Heartbeat,
        FromCentral::Calls { query: 1, of: Some(control()) },
        FromCentral::Observe(true),
        FromCentral::Finish { query: 2 },
        FromCentral::GoOn { query: 3 },
        FromCentral::Settle { query: 4 },
    ];
    messages.extend(says.map(FromCentral::Says));
    messages
}

fn wanted() -> Wanted {
    Wanted {
        spec: "inventory:Inventory.reserve@arrive".to_owned(),
        scope: Scope::Process,
        ignore: 1,
        once: false,
        condition: Some("args.item == 'tea'".to_owned()),
        hold_for: Some(Duration::from_millis(1_500)),
    }
}

/// What people ask.
pub(super) fn requests() -> Vec<Request> {
    let breakpoint = BreakpointId(1);
    vec![
        Request::Session,
        Request::Processes,
        Request::Break(wanted()),
        Request::Breakpoints,
        Request::Delete(Some(breakpoint)),
        Request::Enable { breakpoint, enabled: false },
        Request::Change { breakpoint, wanted: wanted() },
        Request::Holds,
        Request::Backtrace(HoldId(1)),
        Request::Calls,
        Request::Continue(Whom::TheOnly),
        Request::Continue(Whom::Process("inventory".to_owned())),
        Request::Release(HoldId(1)),
        Request::Pause(None),
        Request::Watched,
        Request::Replay,
        Request::Events { follow: false },
        Request::Wait { breakpoint, timeout: Duration::from_secs(10) },
        Request::Stop,
    ]
}

fn hold() -> HoldView {
    HoldView {
        id: HoldId(3),
        process: "inventory".to_owned(),
        at: "Inventory.reserve@arrive".to_owned(),
        control: Some(control()),
        reason: HoldReason::Breakpoint,
        breakpoint: Some(BreakpointId(1)),
        because_of: vec![HoldId(1), HoldId(2)],
        held_ms: 90,
        at_least_ms: Some(4),
        args: Some(json!({"item": "tea", "tags": [1, 2.5, null]})),
        result: None,
    }
}

fn breakpoint_view() -> BreakpointView {
    BreakpointView {
        id: BreakpointId(1),
        wanted: wanted(),
        enabled: true,
        processes: vec!["inventory".to_owned()],
        hits: 1,
        met: 2,
        spent: false,
        errors: 0,
        last_error: None,
    }
}

/// What a session answers.
pub(super) fn replies() -> Vec<Reply> {
    let name = || "inventory".to_owned();
    let process = ProcessView {
        name: name(),
        pid: 12,
        state: ProcessState::Held,
        paused: true,
        clock_ms: -4,
        delay_ms: 9,
        in_flight: 1,
        served: 2,
        made: 3,
        held: 1,
        waiting: 0,
        from_outside: 0,
        calls: vec!["payments".to_owned()],
        methods: vec![method().to_string()],
        points: vec![label().to_string()],
        written: Some(7),
        durable: Some(6),
        missing: Some(0),
        dropped: DroppedHere { events: 1, ..DroppedHere::default() },
    };
    let call = CallView {
        process: name(),
        method: method(),
        control: control(),
        depth: 1,
        age_ms: 5,
        remaining_ms: Some(9_000),
        hold: Some(HoldId(3)),
    };
    let frame =
        FrameView { process: name(), method: Some(method()), age_ms: Some(4), remaining_ms: None };
    let session = SessionView {
        age_ms: 1,
        processes: 2,
        held: 3,
        waiting: 4,
        order_guaranteed: true,
        messages_sent: 5,
        left: 6,
        dropped: Dropped { events: 7, ..Dropped::default() },
    };
    let whats = [
        What::Joined(name()),
        What::Stands(hold()),
        What::GoesOn { hold: HoldId(3), process: name(), held_ms: 4 },
        What::BreakpointSet(breakpoint_view()),
        What::BreakpointDeleted(BreakpointId(1)),
        What::Paused { process: name(), paused: true },
        What::Released(HoldId(1)),
        What::Missed(7),
    ];
    let mut replies = vec![
        Reply::Session(session),
        Reply::Processes(vec![process]),
        Reply::Breakpoints(vec![breakpoint_view()]),
        Reply::Holds(vec![hold(), hold()]),
        Reply::Backtrace(Backtrace { hold: hold(), frames: vec![frame] }),
        Reply::Calls(vec![call]),
        Reply::Watched(vec![WatchView { process: name(), name: name(), value: json!([[1], {}]) }]),
        Reply::Replay(vec![ReplayView {
            process: name(),
            start: 1,
            is_there: true,
            progress: progress(),
        }]),
        Reply::End,
        Reply::Hit(hold()),
        Reply::TimedOut,
        Reply::Done(4),
        Reply::Refused("no such breakpoint".to_owned()),
    ];
    let notice = |what| Reply::Notice(Notice { at_ms: 4, what });
    replies.extend(whats.into_iter().map(notice));
    replies.extend(events().into_iter().map(|event| notice(What::Event(event))));
    replies
}

/// `count` elements, claimed and there, after what stands before them: more than a message
/// may have of them, and as many as fit.
fn lists(before: &[u8], element: &[u8], max: usize) -> Vec<Vec<u8>> {
    let fits = (DIALLED_BYTES_MAX - before.len() - 16) / element.len();
    let list = |claimed: usize, there: usize| {
        [before, &binary(&(claimed as u64)), &element.repeat(there)].concat()
    };
    vec![list(max, max.min(fits)), list(max + 1, fits), list(fits, fits), list(1 << 60, fits)]
}

/// All but the last byte of a message that ends with an empty list.
fn up_to_list(message: &FromSatellite) -> Vec<u8> {
    let mut bytes = binary(message);
    bytes.pop();
    bytes
}

/// The heaviest that satellites could say.
pub(super) fn heavy_from_satellite() -> Vec<Vec<u8>> {
    let short = |text: &str| ControlId::new(text).expect("a name");
    let event = Event {
        id: EventId { process: ProcessName::new("p").expect("a name"), number: EventNumber(1) },
        at: RealTime::default(),
        delay: Delay::ZERO,
        kind: EventKind::Ended { control: short("c") },
    };
    let call = InFlight {
        control: short("c"),
        method: MethodName::new("m").expect("a name"),
        age: Duration::ZERO,
        ..in_flight()
    };
    // An enum's number, then the list: `dropped` and other fields after it never come.
    let events = binary(&FromSatellite::Events { events: Vec::new(), dropped: 0 });
    let calls = up_to_list(&FromSatellite::Calls { query: 1, calls: Vec::new() });
    let names = binary(&FromSatellite::Names(Names::default()));
    let status = binary(&FromSatellite::Status(Status::default()));
    // Four counters before the breakpoints, and these before what is watched.
    let (breakpoints, watched) = (&status[..5], &status[..6]);
    let count = Count { breakpoint: BreakpointId(1), met: 0, errors: 0, error: None };
    let stack = binary(&FromSatellite::Says(ToCentral::Ask {
        number: 1,
        stack: Stack::home(ProcessIndex(1)),
        delay: None,
        sent: RealTime::default(),
    }));
    let mut heavy = lists(&events[..1], &binary(&event), EVENTS_MAX);
    heavy.extend(lists(&calls, &binary(&call), CALLS_MAX));
    heavy.extend(lists(&names[..1], &binary(&"m"), NAMES_MAX));
    heavy.extend(lists(breakpoints, &binary(&count), COUNTS_MAX));
    heavy.extend(lists(watched, &binary(&("", "")), WATCHED_MAX));
    heavy.extend(lists(&stack[..3], &[1], ddbx_protocol::session::STACK_MAX + 1));
    // Names as long as a frame, and as long as they may be.
    let text = |bytes: usize| binary(&"x".repeat(bytes));
    heavy.extend(
        [DIALLED_BYTES_MAX - 64, 4096, 4097]
            .map(|bytes| [&names[..1], &[1], &text(bytes)[..]].concat()),
    );
    let long = ControlId::new("c".repeat(4_000)).expect("a name");
    let by = Some(long.clone());
    let event = Event { kind: EventKind::Spawned { control: long, by }, ..event };
    heavy.push(binary(&FromSatellite::Events { events: vec![event; EVENTS_MAX], dropped: 0 }));
    heavy
}

/// The heaviest that central could say.
pub(super) fn heavy_from_central() -> Vec<Vec<u8>> {
    let permit = binary(&FromCentral::Says(ToSatellite::Permit(Permit::default())));
    let before = &permit[..permit.len() - 1];
    let timed = Timed {
        clock: VirtualTime::default(),
        leaves_with: Delay::ZERO,
        by: StopId { process: ProcessIndex(1), number: 1 },
    };
    lists(before, &binary(&timed), TIMED_MAX)
}

/// The heaviest that people could ask.
pub(super) fn heavy_requests() -> Vec<Vec<u8>> {
    let wanted = |spec: &str| {
        format!(
            "{{\"break\":{{\"spec\":\"{spec}\",\"scope\":\"call\",\"ignore\":0,\"once\":false,\
             \"condition\":null,\"hold_for_ms\":null,\"more\":"
        )
    };
    let texts = [
        wanted(&"\\u0041".repeat(DIALLED_BYTES_MAX / 7)),
        wanted(&format!("{}\\n{}", "a".repeat(600_000), "b".repeat(400_000))),
        wanted("p:*@call") + &"[".repeat(DIALLED_BYTES_MAX - 300),
        wanted("p:*@call") + &"{\"a\":".repeat(DIALLED_BYTES_MAX / 6),
        wanted("p:*@call") + "[" + &"0,".repeat(DIALLED_BYTES_MAX / 3) + "0]}}",
        "[".repeat(DIALLED_BYTES_MAX - 1),
    ];
    texts.map(String::into_bytes).to_vec()
}

/// The same in every run.
pub(super) fn key() -> ProcessKey {
    serde_json::from_value(serde_json::json!(4711)).expect("a number")
}
