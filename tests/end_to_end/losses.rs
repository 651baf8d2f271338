//! The debugged program comes first: whatever dies, what it holds goes on, and no call
//! ends in another way than without a debugger.

use std::time::{Duration, Instant};

use ddbx_protocol::session::LEASE;
use ddbx_tests::waiting::until;
use rustix::process::Signal;

use crate::cluster::Cluster;
use crate::process::Process;
use crate::walks::Caller;

/// Longer than deadlines, shorter than patience.
const DEADLINE_MS: u64 = 1_500;
const HELD_MS: u64 = 1_800;

/// How soon after a loss everybody has gone on and come to an end.
pub const SOON: Duration = Duration::from_secs(3);

/// One that hangs is lost when its lease is over.
const SOON_AFTER_LEASE: Duration = LEASE.saturating_add(SOON);

fn held_longer_than_deadlines(hold: &serde_json::Value) -> bool {
    hold["reason"] == "breakpoint" && hold["held_ms"].as_u64().unwrap() > HELD_MS
}

/// A call is held in c, another one waits because of that, and a third would miss its
/// deadline with or without a debugger.
pub fn hold_calls(cluster: &Cluster, caller: &mut Caller) {
    caller.warm_up(&["a", "b", "c"]);
    let breakpoint = cluster.set_break(&["c:Walker.walk@arrive"]);
    caller.walk("held", DEADLINE_MS, &[("a", 0), ("b", 0), ("c", 0)]);
    cluster.hit(&breakpoint);
    caller.walk("waits", DEADLINE_MS, &[("a", 0), ("b", 0), ("c", 0)]);
    caller.walk("late", 300, &[("a", 0), ("b", 60_000)]);
    cluster.hold("held for longer than its deadline", held_longer_than_deadlines);
    for name in ["held", "waits", "late"] {
        assert!(!caller.has_ended(name), "{name}");
    }
}

pub fn all_end_as_without_a_debugger(caller: &Caller, soon: Duration) {
    let lost = Instant::now();
    assert_eq!(caller.outcome("held").what, "ok");
    assert_eq!(caller.outcome("waits").what, "ok");
    assert_eq!(caller.outcome("late").what, "deadline");
    assert!(lost.elapsed() < soon, "took {:?}", lost.elapsed());
}

/// Somebody is held again, and let go on again.
fn breakpoints_work(cluster: &Cluster, caller: &mut Caller, breakpoint: &str, name: &str) {
    caller.walk(name, DEADLINE_MS, &[("a", 0), ("b", 0), ("c", 0)]);
    let hold = cluster.hit(breakpoint);
    assert_eq!(hold["control"], format!("caller/{name}"));
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome(name).what, "ok");
}

#[test]
fn central_is_killed_and_comes_back() {
    let (cluster, mut central) = Cluster::open();
    let _walkers = ["a", "b", "c"].map(|name| cluster.walker(name));
    let mut caller = cluster.caller("caller");
    hold_calls(&cluster, &mut caller);

    central.kill();
    all_end_as_without_a_debugger(&caller, SOON);

    let _central = cluster.central();
    cluster.until_present(&["a", "b", "c", "caller"]);
    let breakpoint = cluster.set_break(&["c:Walker.walk@arrive"]);
    breakpoints_work(&cluster, &mut caller, &breakpoint, "again");
}

#[test]
fn central_hangs_and_comes_back() {
    let (cluster, central) = Cluster::open();
    let _walkers = ["a", "b", "c"].map(|name| cluster.walker(name));
    let mut caller = cluster.caller("caller");
    hold_calls(&cluster, &mut caller);

    central.signal(Signal::STOP);
    all_end_as_without_a_debugger(&caller, SOON_AFTER_LEASE);

    central.signal(Signal::CONT);
    cluster.until_present(&["a", "b", "c", "caller"]);
    // The same session: its breakpoint is still there.
    until("nobody stands still", || cluster.holds().is_empty().then_some(()));
    breakpoints_work(&cluster, &mut caller, "1", "again");
}

#[test]
fn who_looks_and_who_waits_may_be_killed() {
    let (cluster, mut central) = Cluster::open();
    let _walkers = ["a", "b", "c"].map(|name| cluster.walker(name));
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a", "b", "c"]);
    let breakpoint = cluster.set_break(&["c:Walker.walk@arrive"]);
    let never = cluster.set_break(&["nobody:Walker.walk@arrive"]);

    let mut looks = cluster.start_ddbx(&["events", "--follow"]);
    looks.line(|line| line.contains("joins"));
    let mut waits = cluster.start_ddbx(&["wait", "--hit", &never]);
    caller.walk("held", DEADLINE_MS, &[("a", 0), ("b", 0), ("c", 0)]);
    let hold = cluster.hit(&breakpoint);
    looks.line(|line| line.contains("stands in c"));
    looks.kill();
    waits.kill();

    let still = cluster.hold("held for longer than its deadline", held_longer_than_deadlines);
    assert_eq!(still["id"], hold["id"]);
    assert!(central.is_running() && !caller.has_ended("held"));
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome("held").what, "ok");
}

#[test]
fn a_service_dies_while_others_wait_for_it() {
    let (cluster, _central) = Cluster::open();
    let _walkers = ["a", "b"].map(|name| cluster.walker(name));
    let mut dies = cluster.walker("c");
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a", "b", "c"]);
    let breakpoint = cluster.set_break(&["c:Walker.walk@arrive"]);
    caller.walk("held", 60_000, &[("a", 0), ("b", 0), ("c", 0)]);
    cluster.hit(&breakpoint);
    caller.walk("waits", 60_000, &[("a", 0), ("b", 0)]);
    cluster.hold("somebody waits", |hold| hold["control"] == "caller/waits");
    assert!(!caller.has_ended("waits"));

    dies.kill();
    let lost = Instant::now();
    assert_eq!(caller.outcome("waits").what, "ok");
    // Its caller finds out from the connection, as without a debugger.
    assert!(caller.outcome("held").what.starts_with("failed"));
    assert!(lost.elapsed() < SOON, "took {:?}", lost.elapsed());
    cluster.until_present(&["a", "b", "caller"]);
    until("nobody stands still", || cluster.holds().is_empty().then_some(()));
}

/// Its callers hear of it from their connections before central does. In virtual time that
/// is when the call was held, and no deadline had passed.
#[test]
fn a_service_shuts_down_with_a_call_that_is_held_for_longer_than_its_deadline() {
    let (cluster, _central) = Cluster::open();
    let _walkers = ["a", "b"].map(|name| cluster.walker(name));
    let mut ends = Process::start(&mut cluster.actor(&["walker", "c"], &["--drives"]));
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a", "b", "c"]);
    let breakpoint = cluster.set_break(&["c:Walker.walk@arrive"]);
    caller.walk("held", DEADLINE_MS, &[("a", 0), ("b", 0), ("c", 0)]);
    cluster.hit(&breakpoint);
    cluster.hold("held for longer than its deadline", held_longer_than_deadlines);

    ends.say("return");
    assert!(ends.end().success());
    assert_eq!(caller.outcome("held").what, "failed: cut off");
}

#[test]
fn a_service_may_come_before_its_session() {
    let cluster = Cluster::new();
    let service: Process = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a"]);
    let said = service.complained();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("no session runs at") && said.contains("going on alone"), "{said}");

    let _central = cluster.central();
    cluster.until_present(&["a", "caller"]);
    let breakpoint = cluster.set_break(&["a:Walker.walk@arrive"]);
    caller.walk("held", DEADLINE_MS, &[("a", 0)]);
    cluster.hit(&breakpoint);
    cluster.hold("held for longer than its deadline", held_longer_than_deadlines);
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome("held").what, "ok");
}

#[test]
fn a_session_that_cannot_be_is_one_line_and_the_service_works() {
    let mut cluster = Cluster::new();
    for wrong in ["no such thing", "tcp:nowhere", "tcp:127.0.0.1:1", "unix:"] {
        cluster.use_session(wrong, None);
        let service = cluster.walker("a");
        let mut caller = cluster.caller("caller");
        caller.walk("works", 30_000, &[("a", 0)]);
        assert_eq!(caller.outcome("works").what, "ok", "{wrong}");
        let said = service.complained();
        assert_eq!(said.lines().count(), 1, "{wrong}: {said}");
        assert!(said.starts_with("ddbx: a: "), "{wrong}: {said}");
        std::fs::remove_file(cluster.path("a.addr")).unwrap();
    }
}
