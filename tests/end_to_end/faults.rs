//! Whatever goes wrong with real processes, the debugged program does not notice.

use std::process::Command;

use serde_json::Value;

/// The short version of what `faults` does before a release: each kind of fault once.
#[test]
fn the_program_does_not_notice_faults() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faults"));
    command.args(["--schedules", "15", "--seed", "1", "--satellites", "300", "--json"]);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let complained = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}{complained}");
    let report: Value = serde_json::from_str(&said).unwrap();
    for number in ["hung_programs", "failed_differently", "durable_lost"] {
        assert_eq!(report[number], 0, "{said}");
    }
    assert!(report["durable_promised"].as_u64().unwrap() > 0, "{said}");
    let faults = report["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 15, "{said}");
    for fault in faults {
        match fault["why_skipped"].as_str() {
            Some(why) => println!("skipped: {} ({why})", fault["kind"]),
            None => assert!(fault["played"].as_u64().unwrap() > 0, "{fault}"),
        }
    }
}
