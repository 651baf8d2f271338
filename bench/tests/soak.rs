//! The shop for some seconds while breakpoints come and go: the short version of the long run.

use std::process::Command;

use serde_json::Value;

#[test]
fn nothing_times_out_and_the_order_is_kept() {
    let mut soak = Command::new(env!("CARGO_BIN_EXE_ddbx-bench"));
    soak.args(["soak", "--minutes", "0.1", "--seed", "7", "--customers", "4", "--json"]);
    // Slow enough for a busy machine; how fast this one is says nothing about the order.
    soak.args(["--slower", "8", "--tolerated-ms", "1000"]);
    let output = soak.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    let summary: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!(summary["seed"], 7);
    assert!(summary["debugging"]["hits"].as_u64().unwrap() > 0, "{summary}");
    assert!(summary["order"]["events"].as_u64().unwrap() > 100, "{summary}");
    let verdict = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    assert!(said.lines().skip(1).map(verdict).all(|verdict| verdict["pass"] != false), "{said}");
}
