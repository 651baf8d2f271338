//! `ddbx plan` as programs use it: JSON out, exit codes, and every kind of bad
//! input refused in one line that names the place.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn plan(input: &[u8], args: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ddbx"))
        .args(["plan", "-"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || match stdin.write_all(input) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => panic!("{error}"),
            _ => drop(stdin),
        });
        child.wait_with_output().unwrap()
    })
}

/// Exit code 2, nothing on standard output, one short line that has `place` in it.
#[track_caller]
fn refused(input: impl AsRef<[u8]>, place: &str) {
    let output = plan(input.as_ref(), &["--json"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(output.stdout.is_empty());
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.len() < 1_000 && stderr.contains(place), "{stderr}");
}

fn one_fragment_each(names: &[&str], breakpoints: Value) -> String {
    let fragments = json!([{"pid": "A", "time": 1}]);
    let executions: Vec<Value> =
        names.iter().map(|name| json!({"name": name, "fragments": fragments})).collect();
    json!({"executions": executions, "breakpoints": breakpoints}).to_string()
}

#[test]
fn golden_cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/algorithm-d");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let case: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        for mode in ["virtual", "virtual-strict", "literal"] {
            let input = case["input"].to_string();
            let output = plan(input.as_bytes(), &["--json", "--mode", mode]);
            let mut printed: Value = serde_json::from_slice(&output.stdout).unwrap();
            for execution in printed["executions"].as_array_mut().unwrap() {
                for fragment in execution["fragments"].as_array_mut().unwrap() {
                    let cause = fragment.as_object_mut().unwrap().remove("cause");
                    assert_eq!(cause.is_some(), fragment["propagated"] != 0);
                }
            }
            assert_eq!(printed, case["expected"][mode.replace('-', "_")], "{path:?} {mode}");
            assert_eq!(output.status.code(), Some(0));
        }
    }
}

#[test]
fn nontermination_is_an_answer() {
    // B7 A1 / B1+8 A3+1 B1 / A2 B1+1 A3 / A9 B1
    let fragment = |pid: &str, time: u64| json!({"pid": pid, "time": time});
    let input = json!({
        "executions": [
            {"name": "E1", "fragments": [fragment("B", 7), fragment("A", 1)]},
            {"name": "E2", "fragments": [fragment("B", 1), fragment("A", 3), fragment("B", 1)]},
            {"name": "E3", "fragments": [fragment("A", 2), fragment("B", 1), fragment("A", 3)]},
            {"name": "E4", "fragments": [fragment("A", 9), fragment("B", 1)]},
        ],
        "breakpoints": [
            {"execution": "E2", "fragment": 1, "suspend": 8},
            {"execution": "E2", "fragment": 2, "suspend": 1},
            {"execution": "E3", "fragment": 2, "suspend": 1},
        ],
    })
    .to_string();
    let output = plan(input.as_bytes(), &["--json", "--mode", "literal"]);
    assert_eq!(output.status.code(), Some(3));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed, json!({"error": "nontermination", "steps": 1101}));

    let output = plan(input.as_bytes(), &["--mode", "literal"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8(output.stderr).unwrap().contains("--mode virtual"));
}

#[test]
fn bad_programs_are_refused() {
    let breakpoint = |execution: &str, fragment: i64, suspend: i64| json!({"execution": execution, "fragment": fragment, "suspend": suspend});
    let with = |breakpoints: Value| one_fragment_each(&["E1"], breakpoints);
    refused(with(json!([breakpoint("E9", 1, 1)])), "\"E9\"");
    refused(with(json!([breakpoint("E1", 2, 1)])), "fragment 2 of execution \"E1\"");
    refused(with(json!([breakpoint("E1", 0, 1)])), "fragment 0 of execution \"E1\"");
    refused(with(json!([breakpoint("E1", -1, 1)])), "breakpoints[0].fragment");
    refused(with(json!([breakpoint("E1", 1, -1)])), "breakpoints[0].suspend");
    refused(with(json!([breakpoint("E1", 1, 1), breakpoint("E1", 1, 0)])), "two breakpoints");
    refused(one_fragment_each(&["E1", "E1"], json!([])), "\"E1\"");
    refused(r#"{"executions":[{"name":"E1","fragments":[]}]}"#, "\"E1\"");
    refused(r#"{"executions":[{"name":"E1","fragments":[{"pid":"A","time":0}]}]}"#, "fragment 1");
    refused(r#"{"executions":[],"breakpoint":[]}"#, "breakpoint");
    refused(r#"{"breakpoints":[]}"#, "executions");
    refused(r#"[[["E1",[["A",5]]]]]"#, "expected an object");
}

#[test]
fn numbers_out_of_range_are_refused() {
    let times = |times: &[&str]| {
        let fragments: Vec<String> =
            times.iter().map(|time| format!(r#"{{"pid":"A","time":{time}}}"#)).collect();
        format!(r#"{{"executions":[{{"name":"E1","fragments":[{}]}}]}}"#, fragments.join(","))
    };
    let most = i64::MAX.to_string();
    refused(times(&["-1"]), "executions[0].fragments[0].time");
    refused(times(&["1.5"]), "executions[0].fragments[0].time");
    refused(times(&["1e3"]), "executions[0].fragments[0].time");
    refused(times(&["9223372036854775808"]), "executions[0].fragments[0].time");
    refused(times(&["18446744073709551616"]), "executions[0].fragments[0].time");
    refused(times(&[&most, "1"]), "fragment 2");
    assert_eq!(plan(times(&[&most]).as_bytes(), &["--json"]).status.code(), Some(0));

    let suspended = json!([{"execution": "E1", "fragment": 1, "suspend": i64::MAX}]);
    refused(one_fragment_each(&["E1"], suspended), "fragment 1");
}

#[test]
fn garbage_is_refused_quickly() {
    refused("", "line 1");
    refused("nonsense", "line 1");
    refused("{}{}", "executions");
    refused([0xfe, 0xff, 0x00, 0x7b], "not JSON");
    refused(r#"{"executions":[]} trailing"#, "line 1");
    refused([0xff, 0xfe, 0x00], "line 1");
    refused("[".repeat(1_000_000), "line 1");
    refused(r#"{"executions":"#.repeat(100_000), "executions");
    refused(
        format!(r#"{{"executions":[{{"name":{}1{}}}]}}"#, "[".repeat(500), "]".repeat(500)),
        "name",
    );
    let garbage: Vec<u8> =
        (0..100_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    refused(&garbage, "line 1");
    refused(format!("\"{}\"", "x".repeat(100_000_000)), "line 1");
    refused(format!(r#"{{"{}\n":1}}"#, "k".repeat(1_000)), "expected `executions`");
}

#[test]
fn the_report_escapes_what_names_contain() {
    let input = one_fragment_each(&["E\u{1b}[2J\n1"], json!([]));
    let output = plan(input.as_bytes(), &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains('\u{1b}') && text.contains("E\\u{1b}[2J\\u{a}1"), "{text}");
}
