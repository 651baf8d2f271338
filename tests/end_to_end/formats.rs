//! What programs read: `--json`, `--help`, completions.

use serde_json::Value;

use crate::cluster::Cluster;

fn has(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "no {field} in {value}");
    }
}

#[test]
fn json_of_every_command() {
    let (cluster, _central) = Cluster::open();
    let _a = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["a"]);
    let breakpoint_fields = [
        "id",
        "spec",
        "scope",
        "ignore",
        "once",
        "condition",
        "hold_for_ms",
        "enabled",
        "processes",
        "hits",
        "met",
        "spent",
        "errors",
        "last_error",
    ];
    let hold_fields = [
        "id",
        "process",
        "at",
        "control",
        "reason",
        "breakpoint",
        "because_of",
        "held_ms",
        "at_least_ms",
        "args",
        "result",
    ];
    let set = cluster.json(&["break", "a:Walker.walk@arrive", "--for", "1h", "--if", "true"]);
    has(&set, &breakpoint_fields);
    assert!(set["spec"] == "a:Walker.walk@arrive" && set["scope"] == "process", "{set}");
    has(&cluster.json(&["breaks"])[0], &breakpoint_fields);

    caller.walk("held", 30_000, &[("a", 0)]);
    let hit = cluster.json(&["wait", "--hit", "1"]);
    has(&hit, &hold_fields);
    has(&cluster.json(&["holds"])[0], &hold_fields);
    let backtrace = cluster.json(&["bt", "1"]);
    has(&backtrace["hold"], &hold_fields);
    has(&backtrace["frames"][0], &["process", "method", "age_ms", "remaining_ms"]);

    let ps = cluster.json(&["ps"]);
    has(&ps, &["age_ms", "held", "waiting", "order_guaranteed", "messages_sent"]);
    let process_fields = [
        "name",
        "pid",
        "state",
        "paused",
        "clock_ms",
        "delay_ms",
        "in_flight",
        "served",
        "made",
        "held",
        "waiting",
        "from_outside",
        "calls",
        "methods",
        "points",
    ];
    has(&ps["processes"][0], &process_fields);
    assert_eq!(ps["processes"][1]["calls"], serde_json::json!(["a"]));
    let watched =
        ddbx_tests::waiting::until("a value", || cluster.json(&["watch"]).get(0).cloned());
    has(&watched, &["process", "name", "value"]);

    assert_eq!(cluster.json(&["continue", "1"]), serde_json::json!({ "continued": 1 }));
    assert_eq!(caller.outcome("held").what, "ok");
    caller.walk("forced", 30_000, &[("a", 0)]);
    let id = cluster.hit("1")["id"].to_string();
    assert_eq!(cluster.json(&["release", &id]), serde_json::json!({ "released": 1 }));
    assert_eq!(caller.outcome("forced").what, "ok");
    assert_eq!(cluster.json(&["pause", "a"]), serde_json::json!({ "paused": 1 }));
    assert_eq!(cluster.json(&["panic"]), serde_json::json!({ "paused": 2 }));
    has(&cluster.json(&["continue", "--all"]), &["continued"]);
    for command in ["disable", "enable"] {
        has(&cluster.json(&[command, "1"]), &breakpoint_fields);
    }
    assert_eq!(cluster.json(&["delete", "--all"]), serde_json::json!({ "deleted": 1 }));
    // One object on each line.
    for line in cluster.ddbx(&["events", "--json"]).well().lines() {
        has(&serde_json::from_str(line).unwrap(), &["at_ms"]);
    }
    assert_eq!(cluster.json(&["stop"]), serde_json::json!({ "ended": true }));
}

#[test]
fn help_of_every_command() {
    let cluster = Cluster::new();
    let all = cluster.ddbx_plain(&["--help"]).well();
    let commands = all.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names: Vec<_> =
        commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() >= 18, "{names:?}");
    for name in names {
        let help = cluster.ddbx_plain(&["help", name]).well();
        assert!(help.contains("Usage: ddbx"), "{name}: {help}");
        if name != "help" {
            assert_eq!(cluster.ddbx_plain(&[name, "--help"]).well(), help, "{name}");
            assert!(help.contains("Example"), "{name} has no example: {help}");
        }
    }
}

#[test]
fn completions_for_shells() {
    let cluster = Cluster::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = cluster.ddbx_plain(&["completions", shell]).well();
        assert!(script.contains("ddbx") && script.contains("breaks"), "{shell}: {script}");
    }
}
