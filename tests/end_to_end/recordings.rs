//! Recordings of real processes: how they end, what survives, and what the program
//! notices of it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ddbx_tests::small_disk::SmallDisk;
use ddbx_tests::waiting::until;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::walks::Caller;

/// Longer than any test takes.
const DEADLINE_MS: u64 = 60_000;

/// A cluster without a session, and where it records.
fn by_hand() -> (Cluster, PathBuf) {
    let mut cluster = Cluster::new();
    // An empty variable counts as none.
    cluster.use_session("", None);
    let recording = cluster.path("recording");
    cluster.record_into(&recording);
    (cluster, recording)
}

fn walks(caller: &mut Caller, name: &str, steps: &[(&str, u64)]) {
    caller.walk(name, DEADLINE_MS, steps);
    assert_eq!(caller.outcome(name).what, "ok");
}

fn end(caller: &mut Caller) {
    caller.0.close_stdin();
    assert!(caller.0.end().success());
}

/// What `ddbx verify` says of a recording in which nothing is wrong.
fn verified(cluster: &Cluster, recording: &Path) -> Value {
    let done = cluster.ddbx_plain(&["verify", recording.to_str().unwrap(), "--json"]);
    serde_json::from_str(&done.well()).unwrap()
}

/// One log of it.
fn log_of<'a>(verified: &'a Value, process: &str, start: u64) -> &'a Value {
    let logs = verified["logs"].as_array().unwrap();
    let log = logs.iter().find(|log| log["process"] == process && log["start"] == start);
    log.unwrap_or_else(|| panic!("no log of {process}, start {start}: {verified}"))
}

/// The bodies of all events of a kind, with process and number.
fn events(cluster: &Cluster, recording: &Path, kind: &str) -> Vec<(Value, Value)> {
    let inspected = cluster.ddbx_plain(&["inspect", recording.to_str().unwrap(), "--json"]).well();
    let entries = inspected.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_kind = entries.filter(|entry| entry["kind"].get(kind).is_some());
    let with_id = of_kind.map(|entry| {
        let id = serde_json::json!({ "process": entry["process"], "number": entry["number"] });
        (id, entry["kind"][kind].clone())
    });
    with_id.collect()
}

/// What `ddbx ps` says of a process.
fn view(cluster: &Cluster, process: &str) -> Value {
    let ps = cluster.json(&["ps"]);
    let mut views = ps["processes"].as_array().unwrap().iter();
    views.find(|view| view["name"] == process).cloned().unwrap_or_default()
}

#[test]
fn each_call_in_one_log_is_an_arrival_in_the_other() {
    let (cluster, recording) = by_hand();
    let mut b = cluster.walker("b");
    let mut a = cluster.caller("a");
    for name in ["one", "two", "three"] {
        walks(&mut a, name, &[("b", 0), ("a", 1), ("b", 0)]);
    }
    // One returns from main, the other does not.
    b.close_stdin();
    assert!(b.end().success());
    a.0.say("exit");
    assert_eq!(a.0.end().code(), Some(7));

    let found = verified(&cluster, &recording);
    assert_eq!(found["findings"].as_array().unwrap().len(), 0, "{found}");
    for process in ["a", "b"] {
        assert_eq!(log_of(&found, process, 1)["end"], "closed", "{found}");
    }
    for (departs, arrives, how_many) in
        [("call_sent", "call_arrived", 9), ("return_sent", "return_arrived", 9)]
    {
        let text = |value: &Value| value.to_string();
        let sent = events(&cluster, &recording, departs);
        let sent: BTreeSet<String> = sent.iter().map(|(id, _)| text(id)).collect();
        let arrived = events(&cluster, &recording, arrives);
        let named: BTreeSet<String> =
            arrived.iter().map(|(_, body)| text(&body["sent_as"])).collect();
        assert_eq!((sent.len(), arrived.len()), (how_many, how_many));
        assert_eq!(sent, named);
    }
}

/// What was said at events of a kind, as `ddbx inspect` tells it.
fn payloads(cluster: &Cluster, recording: &Path, kind: &str) -> Vec<Value> {
    let inspected = cluster.ddbx_plain(&["inspect", recording.to_str().unwrap(), "--json"]).well();
    let entries = inspected.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_kind = entries.filter(|entry| entry["kind"].get(kind).is_some());
    of_kind.map(|entry| entry["payload"].clone()).collect()
}

#[test]
fn what_is_said_is_recorded_only_if_that_is_asked_for_and_what_is_redacted_never() {
    for (variables, is_kept, is_redacted) in [
        (&[][..], false, false),
        (&[("DDBX_PAYLOADS", "1")], true, false),
        (&[("DDBX_PAYLOADS", "1"), ("DDBX_REDACT", "name")], true, true),
    ] {
        let (mut cluster, recording) = by_hand();
        cluster.use_variables(variables);
        let mut b = cluster.walker("b");
        let mut a = cluster.caller("a");
        walks(&mut a, "told-to-nobody", &[("b", 0)]);
        end(&mut a);
        b.close_stdin();
        assert!(b.end().success());

        verified(&cluster, &recording);
        let inspected = cluster.ddbx_plain(&["inspect", recording.to_str().unwrap()]).well();
        for kind in ["call_sent", "call_arrived", "return_sent", "return_arrived"] {
            let said = payloads(&cluster, &recording, kind);
            assert_eq!(said.len(), 1, "{kind}");
            assert_eq!(said[0].is_null(), !is_kept, "{kind}: {}", said[0]);
            if is_kept {
                let text = said[0]["text"].as_str().unwrap();
                assert!(serde_json::from_str::<Value>(text).is_ok(), "{kind}: {text}");
                assert_eq!(said[0]["bytes"], text.len(), "{kind}");
                assert_eq!(said[0]["is_cut"], false, "{kind}");
            }
        }
        let arguments = inspected.lines().filter(|line| line.contains("\"steps\"")).count();
        assert_eq!(arguments, if is_kept { 2 } else { 0 }, "{inspected}");
        let name_is_said = inspected.contains("\"name\":\"told-to-nobody\"");
        assert_eq!(name_is_said, is_kept && !is_redacted, "{inspected}");
    }
}

#[test]
fn what_was_written_survives_a_kill_at_any_moment() {
    const KILLS: u64 = 10;
    let (mut cluster, _central) = Cluster::open();
    let recording = cluster.path("recording");
    cluster.record_into(&recording);
    let mut caller = cluster.caller("caller");
    let mut started = 0;
    let mut go = |caller: &mut Caller| {
        for work_ms in 0..10 {
            caller.walk(&format!("walk-{started}"), DEADLINE_MS, &[("b", work_ms)]);
            started += 1;
        }
    };
    let mut written = Vec::new();
    for kill in 1..=KILLS {
        let mut b = cluster.walker("b");
        let until_written = kill % 3 == 0;
        let until_then = Instant::now() + Duration::from_millis(fastrand::u64(0..100));
        let mut shown = 0;
        while if until_written { shown == 0 } else { Instant::now() < until_then } {
            go(&mut caller);
            shown = view(&cluster, "b")["written"].as_u64().unwrap_or_default();
        }
        go(&mut caller);
        thread::sleep(Duration::from_micros(fastrand::u64(0..40_000)));
        b.kill();
        fs::remove_file(cluster.path("b.addr")).unwrap();
        written.push(shown);
        let found = verified(&cluster, &recording);
        assert_ne!(log_of(&found, "b", kill)["end"], "closed", "{found}");
    }

    // Whoever has lost its server goes to the next one.
    let mut b = cluster.walker("b");
    let lines = || caller.0.printed().lines().map(str::to_owned).collect::<Vec<_>>();
    let outcomes = until("all walks end", || Some(lines()).filter(|lines| lines.len() == started));
    let mut well = 0;
    for line in outcomes {
        let outcome: Value = serde_json::from_str(&line).unwrap();
        match outcome["outcome"].as_str().unwrap() {
            "ok" => well += 1,
            other => assert_eq!(other, "failed: cut off"),
        }
    }
    assert!(well > KILLS, "{well}");
    b.close_stdin();
    assert!(b.end().success());
    end(&mut caller);

    let found = verified(&cluster, &recording);
    for (start, shown) in (1..).zip(&written) {
        let log = log_of(&found, "b", start);
        assert!(log["last"].as_u64().unwrap_or_default() >= *shown, "{shown} of {log}");
        assert_eq!(log["missing"], 0, "{log}");
    }
    assert!(written.iter().filter(|shown| **shown > 0).count() >= 3, "{written:?}");
    assert_eq!(log_of(&found, "caller", 1)["end"], "closed", "{found}");
    assert_eq!(log_of(&found, "b", KILLS + 1)["end"], "closed", "{found}");
}

#[test]
fn what_was_flushed_survives_a_kill_at_once() {
    let (cluster, recording) = by_hand();
    let mut caller = cluster.caller("caller");
    caller.0.say("die flushed");
    assert_eq!(caller.0.end().signal(), Some(9));
    assert_eq!(caller.outcome("last").what, "ok");
    let points = events(&cluster, &recording, "point");
    assert!(points.iter().any(|(_, body)| body["label"] == "last"), "{points:?}");
    assert_eq!(log_of(&verified(&cluster, &recording), "caller", 1)["end"], "open");
}

#[test]
fn ps_tells_when_all_is_on_the_disk() {
    let (mut cluster, _central) = Cluster::open();
    let recording = cluster.path("recording");
    let mut not_recorded = cluster.walker("not-recorded");
    cluster.record_into(&recording);
    let _b = cluster.walker("b");
    let mut caller = cluster.caller("caller");
    caller.warm_up(&["b"]);
    for process in ["b", "caller"] {
        until("all of it is durable", || {
            let view = view(&cluster, process);
            let last = log_of(&verified(&cluster, &recording), process, 1)["last"].clone();
            let is_there = view["written"] == last && view["durable"] == last;
            (last.as_u64() > Some(3) && is_there && view["missing"] == 0).then_some(())
        });
    }
    assert_eq!(view(&cluster, "not-recorded")["durable"], Value::Null);
    not_recorded.close_stdin();
    not_recorded.end();
}

#[test]
fn where_nothing_can_be_recorded_the_program_goes_on() {
    let (mut cluster, _) = by_hand();
    fs::write(cluster.path("file"), "no directory").unwrap();
    fs::create_dir(cluster.path("everybodys")).unwrap();
    fs::set_permissions(cluster.path("everybodys"), fs::Permissions::from_mode(0o777)).unwrap();
    let said = [
        ("file/recording", "cannot record into "),
        ("everybodys", "others can write to it: record into a new directory"),
    ];
    for (directory, why) in said {
        cluster.record_into(&cluster.path(directory));
        let _b = cluster.walker("b");
        let mut caller = cluster.caller("caller");
        walks(&mut caller, "walk", &[("b", 0)]);
        end(&mut caller);
        let complained = caller.0.complained();
        let sentence = complained.strip_prefix("ddbx: caller: not recorded: ");
        assert!(sentence.is_some_and(|sentence| sentence.contains(why)), "{complained}");
        assert_eq!(complained.lines().count(), 1, "{complained}");
        fs::remove_file(cluster.path("b.addr")).unwrap();
    }
}

#[test]
fn a_child_process_has_a_name_of_its_own() {
    let (mut cluster, _central) = Cluster::open();
    let recording = cluster.path("recording");
    cluster.record_into(&recording);
    let mut parent = cluster.actor(&["walker", "program"], &["--drives", "--starts", "child"]);
    let mut parent = Caller(crate::process::Process::start(parent.env("DDBX_PROCESS", "parent")));
    walks(&mut parent, "walk", &[("child", 0)]);
    cluster.until_present(&["child", "parent"]);
    end(&mut parent);
    until("nobody is left", || cluster.left_over().is_empty().then_some(()));
    let found = verified(&cluster, &recording);
    assert_eq!(found["logs"].as_array().unwrap().len(), 2, "{found}");
    for process in ["child", "parent"] {
        assert_eq!(log_of(&found, process, 1)["end"], "closed", "{found}");
    }
}

#[test]
fn a_full_disk_is_a_gap_and_nothing_else() {
    let (mut cluster, _central) = Cluster::open();
    let Some(disk) = SmallDisk::mount(cluster.path("disk")) else {
        println!("skipped: this test mounts a tmpfs, which only root may");
        return;
    };
    let recording = disk.dir().join("recording");
    let filler = disk.fill(64 * 1024).unwrap();
    let _b = cluster.walker("b");
    cluster.record_into(&recording);
    let mut caller = cluster.caller("caller");
    walks(&mut caller, "before", &[("b", 0)]);
    caller.0.say("choose much");
    let missing = || view(&cluster, "caller")["missing"].as_u64();
    let some = until("something is missing", || missing().filter(|missing| *missing > 0));
    for number in 0..20 {
        walks(&mut caller, &format!("walk-{number}"), &[("b", 0)]);
    }
    let more = until("more is missing", || missing().filter(|missing| *missing > some));

    caller.0.say("flush while-full");
    let said = caller.outcome("while-full").what;
    assert!(said.starts_with("No space left on device"), "{said}");

    fs::remove_file(filler).unwrap();
    let last = view(&cluster, "caller")["written"].as_u64();
    until("recording goes on", || {
        walks(&mut caller, &format!("after-{}", fastrand::u64(..)), &[("b", 0)]);
        (view(&cluster, "caller")["written"].as_u64() > last).then_some(())
    });
    caller.0.say("flush afterwards");
    assert_eq!(caller.outcome("afterwards").what, "ok");
    end(&mut caller);
    let complained = caller.0.complained();
    assert_eq!(complained.lines().count(), 1, "{complained}");
    assert!(complained.contains("the program goes on"), "{complained}");

    let found = verified(&cluster, &recording);
    let log = log_of(&found, "caller", 1);
    assert_eq!(log["end"], "closed", "{found}");
    let number = |name: &str| log[name].as_u64().unwrap();
    assert!(number("missing") >= more, "{found}");
    // Nothing is lost without a word.
    assert_eq!(
        number("events") + number("choices") + number("missing"),
        number("last") + 300,
        "{found}"
    );
    let gap = &found["findings"][0];
    assert_eq!((&gap["why"], &gap["process"]), (&"disk_full".into(), &"caller".into()), "{found}");
    assert_eq!(gap["missing"], log["missing"], "{found}");
    let said = format!(
        "{} entries are missing after caller:{} (the disk was full)",
        gap["missing"], gap["after"]
    );
    assert_eq!(gap["text"], said);
    assert!(gap["after"].as_u64() < log["last"].as_u64(), "{found}");
}
