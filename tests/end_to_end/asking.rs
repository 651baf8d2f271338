//! Sessions in which central is asked at every event: slower, and the same for the program.

use std::time::Instant;

use ddbx_protocol::control::{Reply, Request};

use crate::cluster::Cluster;
use crate::losses::{SOON, all_end_as_without_a_debugger, hold_calls};
use crate::process::Process;

fn asking() -> (Cluster, Process) {
    let cluster = Cluster::new();
    let central = cluster.central_with(&["--mode", "ask"]);
    (cluster, central)
}

fn messages_sent(cluster: &Cluster) -> u64 {
    match cluster.ask(&Request::Session) {
        Reply::Session(view) => view.messages_sent,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_is_held_for_long_does_not_time_out() {
    let (cluster, _central) = asking();
    let _walkers = ["a", "b", "c", "far"].map(|name| cluster.walker(name));
    let (mut caller, mut elsewhere) = (cluster.caller("caller"), cluster.caller("elsewhere"));
    elsewhere.warm_up(&["far"]);
    hold_calls(&cluster, &mut caller);
    // Whom it does not concern it does not hold up.
    elsewhere.walk("far", 30_000, &[("far", 0)]);
    assert_eq!(elsewhere.outcome("far").what, "ok");
    assert!(!caller.has_ended("waits"));

    cluster.ddbx(&["delete", "1"]).well();
    cluster.ddbx(&["continue", "--all"]).well();
    all_end_as_without_a_debugger(&caller, SOON);
}

#[test]
fn a_call_without_a_hold_is_asked_for_too() {
    let messages_of_a_walk = |(cluster, _central): (Cluster, Process)| {
        let _walker = cluster.walker("a");
        let mut caller = cluster.caller("caller");
        caller.warm_up(&["a"]);
        let before = messages_sent(&cluster);
        caller.walk("asked for", 30_000, &[("a", 0)]);
        assert_eq!(caller.outcome("asked for").what, "ok");
        messages_sent(&cluster) - before
    };
    assert_eq!(messages_of_a_walk(Cluster::open()), 0, "permits cost no message");
    // Sent, arrived, returned, and back again: each is granted.
    assert!(messages_of_a_walk(asking()) >= 4);
}

#[test]
fn when_central_is_killed_all_go_on() {
    let (cluster, mut central) = asking();
    let _walkers = ["a", "b", "c"].map(|name| cluster.walker(name));
    let mut caller = cluster.caller("caller");
    hold_calls(&cluster, &mut caller);
    let lost = Instant::now();
    central.kill();
    // What was held elsewhere only central knew: a deadline that has waited for that comes
    // together with the answer, and either may be first.
    for name in ["held", "waits", "late"] {
        let outcome = caller.outcome(name).what;
        assert!(outcome == "deadline" || outcome == "ok" && name != "late", "{name}: {outcome}");
    }
    assert!(lost.elapsed() < SOON, "took {:?}", lost.elapsed());

    // The one that comes back is not asked any more, and they hold as always.
    let _central = cluster.central();
    cluster.until_present(&["a", "b", "c", "caller"]);
    let breakpoint = cluster.set_break(&["c:Walker.walk@arrive"]);
    caller.walk("held again", 1_000, &[("a", 0), ("b", 0), ("c", 0)]);
    cluster.hit(&breakpoint);
    cluster.hold("held for long", |hold| hold["held_ms"].as_u64().unwrap() > 1_200);
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome("held again").what, "ok");
}
