//! Breakpoints of all kinds, in processes that run and in those that come later.

use ddbx_protocol::BreakpointId;
use ddbx_protocol::control::{BreakpointView, Reply, Request, Wanted};
use ddbx_tests::waiting::until;

use crate::cluster::Cluster;

#[test]
fn a_condition_stops_only_whom_it_holds_for() {
    let (cluster, _central) = Cluster::open();
    let _a = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a"]);
    let condition = "args.name.startsWith('b') && args.steps.size() == 1";
    let breakpoint = cluster.set_break(&["a:Walker.walk@arrive", "--if", condition]);
    caller.walk("apple", 30_000, &[("a", 0)]);
    assert_eq!(caller.outcome("apple").what, "ok");
    caller.walk("bread", 30_000, &[("a", 0)]);
    let hold = cluster.hit(&breakpoint);
    assert_eq!(hold["args"]["name"], "bread");
    assert_eq!(hold["at"], "Walker.walk@arrive");
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome("bread").what, "ok");
    let view = &cluster.json(&["breaks"])[0];
    assert_eq!((&view["hits"], &view["condition"]), (&1.into(), &condition.into()));
}

#[test]
fn a_condition_that_cannot_be_evaluated_stops_nobody_and_is_shown() {
    let (cluster, _central) = Cluster::open();
    let _a = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    cluster.set_break(&["a:Walker.walk@arrive", "--if", "args.nme == 'x'"]);
    caller.walk("passes", 30_000, &[("a", 0)]);
    assert_eq!(caller.outcome("passes").what, "ok");
    until("the error is counted", || (cluster.json(&["breaks"])[0]["errors"] == 1).then_some(()));
    let text = cluster.ddbx(&["breaks"]).well();
    assert!(text.contains("1 error") && text.contains("\"nme\""), "{text}");
}

#[test]
fn once_ignore_and_for() {
    let (cluster, _central) = Cluster::open();
    let _a = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a"]);
    // Lets one pass, stops one, for a while, and then nobody any more.
    let options = ["--once", "--ignore", "1", "--for", "400ms"];
    let spec = ["a:Walker.walk@return"];
    let breakpoint = cluster.set_break(&[&spec[..], &options].concat());
    caller.walk("first", 30_000, &[("a", 0)]);
    assert!(caller.outcome("first").what == "ok");
    caller.walk("second", 30_000, &[("a", 0)]);
    let hold = cluster.hit(&breakpoint);
    assert_eq!(hold["control"], "caller/second");
    assert_eq!(hold["result"]["Ok"], 1);
    // Nobody continues it.
    let second = caller.outcome("second");
    assert!(second.what == "ok" && second.took_ms >= 400, "{second:?}");
    caller.walk("third", 30_000, &[("a", 0)]);
    assert_eq!(caller.outcome("third").what, "ok");
    let view = &cluster.json(&["breaks"])[0];
    assert!(view["spent"] == true && view["hits"] == 1, "{view}");
    let text = cluster.ddbx(&["breaks"]).well();
    for word in ["for 400ms", "ignores 1", "once", "spent"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_call_is_held_and_its_process_goes_on() {
    let (cluster, _central) = Cluster::open();
    let _walkers = ["a", "b"].map(|name| cluster.walker(name));
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a", "b"]);
    let breakpoint = cluster.set_break(&["a:Walker.walk@arrive", "--scope", "call", "--once"]);
    caller.walk("held", 30_000, &[("a", 0), ("b", 0)]);
    let id = cluster.hit(&breakpoint)["id"].to_string();
    // Nobody else is stopped by it: another one waits only so that the order is kept.
    caller.walk("waits", 30_000, &[("a", 0), ("b", 0)]);
    let waits = cluster.hold("somebody waits", |hold| hold["control"] == "caller/waits");
    assert_eq!(waits["reason"], "delay");
    assert!(cluster.holds().iter().all(|hold| hold["reason"] != "halt"));
    cluster.ddbx(&["continue", &id]).well();
    assert_eq!(caller.outcome("held").what, "ok");
    assert_eq!(caller.outcome("waits").what, "ok");
}

#[test]
fn points_and_all_events_of_a_call() {
    let (cluster, _central) = Cluster::open();
    let _a = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a"]);
    let spec = |event: &str| match event {
        "call" | "resume" => format!("caller:Walker.*@{event}"),
        "point" => "a:point(work*)".to_owned(),
        _ => format!("*:*@{event}"),
    };
    for event in ["call", "arrive", "point", "return", "resume"] {
        let breakpoint = cluster.set_break(&[&spec(event), "--once"]);
        caller.walk(event, 30_000, &[("a", 0)]);
        let hold = cluster.hit(&breakpoint);
        let expected = match event {
            "point" => ("a", "point(worked)".to_owned()),
            "call" | "resume" => ("caller", format!("Walker.walk@{event}")),
            _ => ("a", format!("Walker.walk@{event}")),
        };
        assert_eq!(
            (hold["process"].as_str(), hold["at"].as_str()),
            (Some(expected.0), Some(&*expected.1))
        );
        assert_eq!(hold["args"]["name"], event, "{hold}");
        cluster.ddbx(&["continue"]).well();
        assert_eq!(caller.outcome(event).what, "ok");
    }
}

#[test]
fn a_breakpoint_waits_for_its_process() {
    let (cluster, _central) = Cluster::open();
    let said = cluster.ddbx(&["break", "a:Walker.walk@arrive"]).well();
    assert!(said.contains("no process called a takes part yet"), "{said}");
    let _a = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    caller.walk("first", 30_000, &[("a", 0)]);
    assert_eq!(cluster.hit("1")["control"], "caller/first");
    assert_eq!(cluster.json(&["breaks"])[0]["processes"], serde_json::json!(["a"]));
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome("first").what, "ok");
}

#[test]
fn replicas_have_numbers() {
    let (cluster, _central) = Cluster::open();
    let _first = cluster.walker_at("a", "first");
    let _second = cluster.walker_at("a", "second");
    let mut caller = cluster.caller("caller");
    cluster.until_present(&["a", "a#2", "caller"]);
    caller.warm_up(&["first", "second"]);

    for (spec, stops) in
        [("a", ["a", "a#2"].as_slice()), ("a#1", &["a"]), ("a#2", &["a#2"]), ("*", &["a", "a#2"])]
    {
        let set = cluster.json(&["break", &format!("{spec}:Walker.walk@arrive")]);
        let planted: Vec<_> = set["processes"].as_array().unwrap().iter().collect();
        assert_eq!(planted.iter().filter(|name| **name != "caller").count(), stops.len(), "{set}");
        for (at, process) in [("first", "a"), ("second", "a#2")] {
            let name = format!("{at}-{}", spec.replace(['#', '*'], "-"));
            caller.walk(&name, 30_000, &[(at, 0)]);
            if stops.contains(&process) {
                assert_eq!(cluster.hit(&set["id"].to_string())["process"], process);
                cluster.ddbx(&["continue", process]).well();
            }
            assert_eq!(caller.outcome(&name).what, "ok");
        }
        cluster.ddbx(&["delete", "--all"]).well();
    }
}

#[test]
fn nobody_comes_in_time() {
    let (cluster, _central) = Cluster::open();
    let breakpoint = cluster.set_break(&["a:Walker.walk@arrive"]);
    let said = cluster.ddbx(&["wait", "--hit", &breakpoint, "--timeout", "50ms"]).refused(5);
    assert!(said.contains("nobody stood at breakpoint 1 within 50ms"), "{said}");
    let said = cluster.ddbx(&["wait", "--hit", "9", "--timeout", "30s"]).refused(1);
    assert!(said.contains("no breakpoint 9"), "{said}");
}

#[test]
fn a_disabled_breakpoint_stops_nobody_until_it_is_enabled() {
    let (cluster, _central) = Cluster::open();
    let _a = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a"]);
    let breakpoint = cluster.set_break(&["a:Walker.walk@arrive"]);
    caller.walk("stays", 30_000, &[("a", 0)]);
    let hold = cluster.hit(&breakpoint)["id"].to_string();

    let said = cluster.ddbx(&["disable", &breakpoint]).well();
    assert!(said.contains("breakpoint 1 is disabled: `ddbx enable 1`"), "{said}");
    assert!(said.contains(&format!("hold {hold} still stands there")), "{said}");
    assert!(cluster.ddbx(&["breaks"]).well().contains("disabled"));
    cluster.ddbx(&["continue", &hold]).well();
    assert_eq!(caller.outcome("stays").what, "ok");
    // Neither those who are there, nor one that joins now.
    let _late = cluster.walker_at("a", "late");
    for at in ["a", "late"] {
        caller.walk(at, 30_000, &[(at, 0)]);
        assert_eq!(caller.outcome(at).what, "ok");
    }
    let view = &cluster.json(&["breaks"])[0];
    assert_eq!((&view["enabled"], &view["hits"]), (&false.into(), &1.into()), "{view}");
    assert_eq!(view["processes"], serde_json::json!([]));

    let view = cluster.json(&["enable", &breakpoint]);
    assert_eq!(view["processes"], serde_json::json!(["a", "a#2"]));
    caller.walk("again", 30_000, &[("late", 0)]);
    assert_eq!(cluster.hit(&breakpoint)["control"], "caller/again");
    assert_eq!(cluster.json(&["breaks"])[0]["hits"], 2);
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome("again").what, "ok");
    let seen = cluster.ddbx(&["events"]).well();
    assert!(seen.contains("breakpoint 1 is now at a:Walker.walk@arrive, disabled\n"), "{seen}");
    assert!(seen.contains("breakpoint 1 is now at a:Walker.walk@arrive\n"), "{seen}");

    let said = cluster.ddbx(&["disable", "9"]).refused(1);
    assert!(said.contains("no breakpoint 9"), "{said}");
}

#[test]
fn a_breakpoint_is_changed_and_keeps_its_number() {
    let (cluster, _central) = Cluster::open();
    let _walkers = ["a", "b"].map(|name| cluster.walker(name));
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a", "b"]);
    let id = cluster.set_break(&["a:Walker.walk@arrive", "--once"]);
    caller.walk("first", 30_000, &[("a", 0)]);
    cluster.hit(&id);
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome("first").what, "ok");

    let wanted = |spec: &str, condition: &str| Wanted {
        spec: spec.to_owned(),
        condition: Some(condition.to_owned()),
        ..Wanted::default()
    };
    let change = |breakpoint: u32, wanted: Wanted| {
        cluster.ask(&Request::Change { breakpoint: BreakpointId(breakpoint), wanted })
    };
    let good = wanted("b:Walker.walk@arrive", "args.name == 'meant'");
    for (breakpoint, refused) in [
        (1, wanted("b:Walker.walk@nowhere", "true")),
        (1, wanted("b:Walker.walk@arrive", "args.name ==")),
        (9, good.clone()),
    ] {
        let reply = change(breakpoint, refused);
        assert!(matches!(reply, Reply::Refused(_)), "{reply:?}");
    }
    assert_eq!(cluster.json(&["breaks"])[0]["spec"], "a:Walker.walk@arrive");

    let Reply::Breakpoint(BreakpointView { id: changed, processes, hits, spent, .. }) =
        change(1, good)
    else {
        panic!("it is not changed");
    };
    assert_eq!((changed.to_string(), hits, spent), (id.clone(), 1, false));
    assert_eq!(processes, ["b"]);
    for (name, at) in [("other-place", "a"), ("other-name", "b")] {
        caller.walk(name, 30_000, &[(at, 0)]);
        assert_eq!(caller.outcome(name).what, "ok");
    }
    caller.walk("meant", 30_000, &[("b", 0)]);
    assert_eq!(cluster.hit(&id)["process"], "b");
    assert_eq!(cluster.json(&["breaks"])[0]["hits"], 2);
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome("meant").what, "ok");
}

#[test]
fn names_that_were_met_are_known() {
    let (cluster, mut central) = Cluster::open();
    let _a = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a"]);
    let known = |process: &str| {
        let ps = cluster.json(&["ps"]);
        let views = ps["processes"].as_array().unwrap().clone();
        let view = views.into_iter().find(|view| view["name"] == process)?;
        Some((view["methods"].clone(), view["points"].clone()))
    };
    let met = (serde_json::json!(["Walker.walk"]), serde_json::json!(["worked"]));
    let until_known =
        || until("they are known", || (known("a") == Some(met.clone())).then_some(()));
    until_known();
    // Who only calls has handled nothing.
    assert_eq!(known("caller").unwrap().0, serde_json::json!([]));
    // Another central is told again.
    central.kill();
    let _central = cluster.central();
    until_known();
}
