//! Text from a debuggee that tries to reach the terminal.

use std::thread;

use ddbx_protocol::link::{Address, Keys};
use ddbx_protocol::session::{ProcessIndex, Stack, StopReason, ToCentral};
use ddbx_protocol::{
    BreakpointId, ControlId, Count, Delay, Event, EventId, EventKind, EventNumber, FromSatellite,
    Gate, InFlight, MethodName, PointLabel, ProcessName, RealTime, RpcEvent, Standing, Status,
};
use ddbx_tests::puppet::Puppet;
use ddbx_tests::tty::Tty;
use ddbx_tests::waiting::until;

use crate::cluster::Cluster;

/// A new title, a cleared screen in three spellings, and text that runs backwards.
const EVIL: &str = "\x1b]0;owned\x07\x1b[2J\u{9b}2J\r\n\u{202e}evil\u{7f}";

/// What names may have in them: nothing that terminals obey, but for the direction.
const NAME: &str = "evil\u{202e}";

/// Plays a process that says all of it.
fn plays(address: Address) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let index = ProcessIndex(666);
        let mut puppet = Puppet::attach(&address, &Keys::default(), NAME, index).await.unwrap();
        let name = ProcessName::new(NAME).unwrap();
        let control = ControlId::root(&name, NAME).unwrap();
        let method = MethodName::new(NAME).unwrap();
        let json = Some(serde_json::to_string(EVIL).unwrap());
        let gate = Gate::Rpc(RpcEvent::Arrive, method.clone());
        let standing = Standing {
            gate,
            control: control.clone(),
            args: json.clone(),
            // Not even JSON.
            result: Some(EVIL.to_owned()),
            awaited: None,
        };
        puppet.say(FromSatellite::Stands { number: 1, standing }).await.unwrap();
        let sent = RealTime::default();
        let stopped = ToCentral::Stopped {
            number: 1,
            reason: StopReason::Breakpoint(BreakpointId(1)),
            stack: Stack::home(index),
            clock: sent - Delay::ZERO,
            sent,
        };
        puppet.say(FromSatellite::Says(stopped)).await.unwrap();
        let label = PointLabel::new(NAME).unwrap();
        let event = Event {
            // Of somebody else, too.
            id: EventId { process: ProcessName::new("victim").unwrap(), number: EventNumber(1) },
            at: sent,
            delay: Delay::ZERO,
            kind: EventKind::Point { control: control.clone(), call: None, label },
        };
        let events = FromSatellite::Events { events: vec![event], dropped: 0 };
        puppet.say(events).await.unwrap();
        let error = Some(EVIL.to_owned());
        let status = Status {
            in_flight: 1,
            breakpoints: vec![Count { breakpoint: BreakpointId(1), met: 1, errors: 1, error }],
            watched: vec![(EVIL.to_owned(), serde_json::to_string(EVIL).unwrap())],
            ..Status::default()
        };
        let (age, due) = (std::time::Duration::from_secs(1), sent - Delay::ZERO);
        let delay = Delay::ZERO;
        let call = InFlight { control, method, depth: 0, age, delay, due, now: sent };
        // Until the session ends.
        let _ = puppet.play(&status, &[call]).await;
    });
}

/// A session with such a process in it.
fn with_evil() -> (Cluster, crate::process::Process) {
    let (cluster, central) = Cluster::open();
    cluster.set_break(&["*:*@arrive"]);
    let address = Address::Unix(cluster.path("run/ddbx/main.sock"));
    thread::spawn(move || plays(address));
    cluster.hold("it stands", |_| true);
    let watched = || cluster.json(&["watch"]).as_array().unwrap().len();
    until("its values are there", || (watched() > 0).then_some(()));
    (cluster, central)
}

fn is_fit_for_a_terminal(text: &str) -> bool {
    let turns = |character| matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !text.contains(|character: char| {
        character != '\n' && (character.is_control() || turns(character))
    })
}

#[test]
fn nothing_that_a_debuggee_says_reaches_the_terminal_as_it_is() {
    let (cluster, _central) = with_evil();
    let id = cluster.holds()[0]["id"].to_string();
    let commands: [&[&str]; 8] = [
        &["ps"],
        &["holds"],
        &["bt", &id],
        &["events"],
        &["watch"],
        &["breaks"],
        &["wait", "--hit", "1"],
        &["pause", EVIL],
    ];
    for command in commands {
        for json in [&[][..], &["--json"]] {
            let words = [command, json].concat();
            let done = cluster.ddbx(&words);
            let said = format!("{}{}", done.out, done.err);
            assert!(is_fit_for_a_terminal(&said), "{words:?}: {said:?}");
            assert!(said.contains("evil"), "{words:?} does not show it: {said:?}");
        }
    }
    // What is told has happened in whoever tells it.
    let events = cluster.ddbx(&["events", "--only", "point"]).well();
    assert!(!events.contains("victim"), "{events}");
}

#[test]
fn nor_does_the_screen_obey_it() {
    let (cluster, _central) = with_evil();
    let mut screen = Tty::start(&cluster.screen_command(&["--session", "main"]), (120, 30));
    for key in ["1", "2", "3", "4", "5", "6", "7"] {
        screen.types(key);
        screen.shows("evil");
        screen.types("\r");
        screen.types("\x1b");
    }
    screen.types("2w");
    screen.shows("evil");
    let raw = String::from_utf8_lossy(&screen.printed()).into_owned();
    for (what, evil) in [
        ("a title", "\x1b]0;owned"),
        ("a control character of Latin-1", "\u{9b}"),
        ("a direction", "\u{202e}"),
        ("a bell", "\x07"),
    ] {
        assert!(!raw.contains(evil), "{what} was set");
    }
    assert!(raw.contains("\\u{202e}"), "it was shown");
}
