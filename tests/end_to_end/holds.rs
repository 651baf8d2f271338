//! What people do with those who stand still, and what they see.

use std::time::{Duration, Instant};

use ddbx_protocol::control::{CallView, Reply, Request};
use ddbx_tests::waiting::until;
use serde_json::Value;

use crate::cluster::Cluster;

#[test]
fn a_backtrace_crosses_processes() {
    let (cluster, _central) = Cluster::open();
    let _walkers = ["a", "b", "c"].map(|name| cluster.walker(name));
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a", "b", "c"]);
    for event in ["arrive", "return"] {
        let breakpoint = cluster.set_break(&[&format!("c:Walker.walk@{event}"), "--once"]);
        caller.walk(event, 1_000, &[("a", 0), ("b", 0), ("c", 0)]);
        let id = cluster.hit(&breakpoint)["id"].to_string();
        // For longer than the deadline, of which as much is left as when it stopped.
        cluster.hold("held for long", |hold| hold["held_ms"].as_u64().unwrap() > 1_200);
        let backtrace = cluster.json(&["bt", &id]);
        let frames = backtrace["frames"].as_array().unwrap();
        let processes: Vec<_> = frames.iter().map(|frame| frame["process"].as_str()).collect();
        assert_eq!(processes, [Some("c"), Some("b"), Some("a"), Some("caller")]);
        for frame in &frames[..3] {
            assert_eq!(frame["method"], "Walker.walk");
            let left = frame["remaining_ms"].as_u64().unwrap();
            assert!((1..=1_000).contains(&left), "{frame}");
            assert!(frame["age_ms"].as_u64().unwrap() > 1_200, "{frame}");
        }
        assert_eq!(frames[3]["method"], Value::Null);
        let text = cluster.ddbx(&["bt", &id]).well();
        assert!(text.contains("#0 c  Walker.walk  for ") && text.contains("deadline in 0."));
        assert!(text.contains("#3 caller  began here"), "{text}");
        cluster.ddbx(&["continue"]).well();
        assert_eq!(caller.outcome(event).what, "ok");
    }
}

#[test]
fn a_process_is_paused_and_goes_on() {
    let (cluster, _central) = Cluster::open();
    let _walkers = ["a", "b"].map(|name| cluster.walker(name));
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a", "b"]);
    let said = cluster.ddbx(&["pause", "b"]).well();
    assert!(said.starts_with("1 process is paused"), "{said}");
    assert_eq!(state(&cluster, "b"), "held");
    caller.walk("held", 1_000, &[("a", 0), ("b", 0)]);
    let hold = cluster.hold("held for longer than its deadline", |hold| {
        hold["process"] == "b" && hold["held_ms"].as_u64().unwrap() > 1_200
    });
    assert!(hold["control"] == "caller/held" && hold["reason"] == "halt", "{hold}");
    assert!(cluster.ddbx(&["ps"]).well().contains("paused"));
    cluster.ddbx(&["continue", "b"]).well();
    assert_eq!(caller.outcome("held").what, "ok");
    assert_eq!(state(&cluster, "b"), "running");

    // The only one that is held need not be named.
    cluster.ddbx(&["pause", "b#1"]).well();
    caller.walk("again", 1_000, &[("a", 0), ("b", 0)]);
    cluster.hold("held again", |hold| hold["process"] == "b");
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome("again").what, "ok");
    let seen = cluster.ddbx(&["events"]).well();
    for what in ["b is paused\n", "b is not paused any more\n"] {
        assert_eq!(seen.matches(what).count(), 2, "{what}: {seen}");
    }
}

fn state(cluster: &Cluster, name: &str) -> String {
    let ps = cluster.json(&["ps"]);
    let view = ps["processes"].as_array().unwrap().iter().find(|view| view["name"] == name);
    view.unwrap()["state"].as_str().unwrap().to_owned()
}

#[test]
fn everything_is_held_and_goes_on() {
    let (cluster, _central) = Cluster::open();
    let _walkers = ["a", "b"].map(|name| cluster.walker(name));
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a", "b"]);
    // It shows itself twice in a second, so it works for longer than that.
    caller.walk("running", 3_500, &[("a", 0), ("b", 3_000)]);
    until("it is in b", || {
        (cluster.json(&["watch"]).to_string().contains("running")).then_some(())
    });
    let said = cluster.ddbx(&["panic"]).well();
    assert!(said.starts_with("3 processes are paused"), "{said}");
    caller.walk("new", 1_000, &[("a", 0)]);
    let timer = |hold: &Value| hold["at"] == "sleep" && hold["held_ms"].as_u64().unwrap() > 800;
    cluster.hold("its work has stopped", timer);
    let said = cluster.ddbx(&["continue"]).refused(1);
    assert!(said.contains("3 paused") && said.contains("--all"), "{said}");
    cluster.ddbx(&["continue", "--all"]).well();
    assert_eq!(caller.outcome("running").what, "ok");
    assert_eq!(caller.outcome("new").what, "ok");
}

#[test]
fn one_that_waits_is_let_go_anyway() {
    let (cluster, _central) = Cluster::open();
    let _walkers = ["a", "b"].map(|name| cluster.walker(name));
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a", "b"]);
    let breakpoint = cluster.set_break(&["b:Walker.walk@arrive"]);
    caller.walk("held", 60_000, &[("a", 0), ("b", 0)]);
    cluster.hit(&breakpoint);
    caller.walk("waits", 60_000, &[("a", 0)]);
    let waits = cluster.hold("somebody waits", |hold| hold["control"] == "caller/waits");
    assert_eq!(waits["because_of"][0], 1, "{waits}");
    let id = waits["id"].to_string();

    let said = cluster.ddbx(&["continue", &id]).refused(1);
    assert!(said.contains(&format!("`ddbx release {id}`")), "{said}");
    assert_eq!(cluster.json(&["ps"])["order_guaranteed"], true);
    cluster.ddbx(&["release", &id]).well();
    assert_eq!(caller.outcome("waits").what, "ok");
    assert!(!caller.has_ended("held"));
    assert_eq!(cluster.json(&["ps"])["order_guaranteed"], false);
    assert!(cluster.ddbx(&["ps"]).well().contains("not guaranteed"));
    let seen = cluster.ddbx(&["events"]).well();
    assert!(seen.contains(&format!("hold {id}: let go anyway")), "{seen}");
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome("held").what, "ok");
}

#[test]
fn values_are_watched() {
    let (cluster, _central) = Cluster::open();
    let _a = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    assert!(cluster.ddbx(&["watch"]).well().starts_with("nothing is watched"));
    caller.warm_up(&["a"]);
    let shown = |name: &str, value: &str| {
        let text = cluster.ddbx(&["watch"]).well();
        text.lines().any(|line| line.split_whitespace().eq(["a", name, value]))
    };
    until("the values are shown", || shown("walks", "1").then_some(()));
    assert!(shown("last", "\"warm-up\""));
    // Conditions see them at once.
    let spec = "a:point(worked)";
    let breakpoint = cluster.set_break(&[spec, "--if", "watch.walks >= 3"]);
    for name in ["second", "third"] {
        caller.walk(name, 30_000, &[("a", 0)]);
        if name == "third" {
            assert_eq!(cluster.hit(&breakpoint)["control"], "caller/third");
            cluster.ddbx(&["continue"]).well();
        }
        assert_eq!(caller.outcome(name).what, "ok");
    }
}

#[test]
fn events_are_followed() {
    let (cluster, _central) = Cluster::open();
    let _a = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a"]);
    // Nobody has followed: nothing of the program is kept.
    let before = cluster.ddbx(&["events"]).well();
    assert!(before.contains("a joins") && !before.contains("Walker.walk"), "{before}");

    let follows = cluster.start_ddbx(&["events", "--follow"]);
    let reads = cluster.start_ddbx(&["events", "-f", "--json"]);
    reads.line(|line| line.contains("joined"));
    follows.line(|line| line.contains("caller joins"));
    let breakpoint = cluster.set_break(&["a:Walker.walk@arrive", "--once"]);
    // Observing begins a moment after the first line: repeat until it is seen.
    let mut number = 0;
    until("calls are seen", || {
        number += 1;
        let name = format!("seen-{number}");
        caller.walk(&name, 30_000, &[("a", 0)]);
        if number == 1 {
            cluster.hit(&breakpoint);
            cluster.ddbx(&["continue"]).well();
        }
        caller.outcome(&name);
        let seen = follows.printed();
        let all = ["calls Walker.walk", "receives Walker.walk", "answers", "has the answer"];
        all.iter().all(|what| seen.contains(what)).then_some(())
    });
    let seen = follows.printed();
    for what in ["breakpoint 1 at a:", "hold 1: caller/seen-1 stands in a", "hold 1: goes on in a"]
    {
        assert!(seen.contains(what), "{what}: {seen}");
    }
    reads.line(|line| line.contains("call_sent"));
    for line in reads.printed().lines() {
        let notice: Value = serde_json::from_str(line).unwrap();
        assert!(notice["at_ms"].is_u64(), "{line}");
    }
}

#[test]
fn calls_in_flight_are_listed() {
    let (cluster, _central) = Cluster::open();
    let _walkers = ["a", "b"].map(|name| cluster.walker(name));
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a", "b"]);
    let calls = || match cluster.ask(&Request::Calls) {
        Reply::Calls(calls) => calls,
        other => panic!("{other:?}"),
    };
    assert_eq!(calls(), []);
    let breakpoint = cluster.set_break(&["b:Walker.walk@arrive", "--scope", "call"]);
    caller.walk("held", 1_000, &[("a", 0), ("b", 0)]);
    let hold = cluster.hit(&breakpoint)["id"].as_u64();
    cluster.hold("held for long", |hold| hold["held_ms"].as_u64().unwrap() > 1_200);
    let calls = calls();
    let [outer, inner] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!((&*outer.process, outer.depth, outer.hold), ("a", 1, None));
    assert_eq!((&*inner.process, inner.depth), ("b", 2));
    assert_eq!(inner.hold.map(|hold| hold.0), hold);
    for CallView { method, control, age_ms, remaining_ms, .. } in [outer, inner] {
        assert_eq!((method.as_str(), control.as_str()), ("Walker.walk", "caller/held"));
        // It has been standing for longer than its deadline, of which something is left.
        let left = remaining_ms.unwrap();
        assert!(*age_ms > 1_200 && (1..=1_000).contains(&left), "{calls:?}");
    }
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome("held").what, "ok");
}

#[test]
fn one_that_waits_says_how_long_still_at_the_least() {
    let (cluster, _central) = Cluster::open();
    let _a = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a"]);
    let breakpoint = cluster.set_break(&["a:Walker.walk@arrive", "--scope", "call", "--once"]);
    caller.walk("held", 60_000, &[("a", 0)]);
    let held = cluster.hit(&breakpoint);
    assert_eq!(held["at_least_ms"], Value::Null);
    // It comes a second after the one for which it waits, and so it goes on as much later.
    cluster.hold("held for a second", |hold| hold["held_ms"].as_u64().unwrap() > 1_000);
    caller.walk("waits", 60_000, &[("a", 0)]);
    let waits = cluster.hold("somebody waits", |hold| hold["control"] == "caller/waits");
    let at_least = waits["at_least_ms"].as_u64().unwrap();
    assert!(at_least > 900, "{waits}");
    let text = cluster.ddbx(&["bt", &waits["id"].to_string()]).well();
    assert!(text.contains("at least ") && text.contains(" more once hold 1 goes on"), "{text}");
    // However slow all of this is: it does not go on sooner than that.
    let before = Instant::now();
    cluster.ddbx(&["continue", "1"]).well();
    assert_eq!(caller.outcome("waits").what, "ok");
    assert!(before.elapsed() >= Duration::from_millis(at_least), "{:?}", before.elapsed());
    assert_eq!(caller.outcome("held").what, "ok");
}
