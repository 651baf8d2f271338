//! The golden cases: inputs with the expected output of all three modes. The
//! command line is checked against the same files in `cli/tests/plan.rs`.

use std::fs;
use std::path::Path;

use ddbx_central::logic::algorithm_d::{ExecutionIndex, Mode, ProgramBuilder, plan, reference};
use serde_json::Value;

#[test]
fn golden_cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/algorithm-d");
    let mut cases = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let case: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let mut builder = ProgramBuilder::default();
        for execution in list(&case["input"]["executions"]) {
            let fragments = list(&execution["fragments"]).iter();
            let fragments = fragments.map(|f| (text(&f["pid"]), number(&f["time"])));
            builder.execution(text(&execution["name"]), fragments).unwrap();
        }
        for breakpoint in list(&case["input"]["breakpoints"]) {
            let (fragment, suspend) =
                (number(&breakpoint["fragment"]), number(&breakpoint["suspend"]));
            builder.breakpoint(text(&breakpoint["execution"]), fragment, suspend).unwrap();
        }
        let program = builder.build();
        for (mode, key) in [
            (Mode::Literal, "literal"),
            (Mode::Virtual, "virtual"),
            (Mode::VirtualStrict, "virtual_strict"),
        ] {
            for outcome in [plan(&program, mode), reference(&program, mode)] {
                let outcome = outcome.unwrap();
                for (index, expected) in (0..).zip(list(&case["expected"][key]["executions"])) {
                    let planned: Vec<_> =
                        outcome.fragments(&program, ExecutionIndex(index)).collect();
                    let place = format!("{} {key} {}", path.display(), expected["name"]);
                    assert_eq!(planned.last().unwrap().end, number(&expected["end"]), "{place}");
                    assert_eq!(planned.len(), list(&expected["fragments"]).len(), "{place}");
                    for (planned, expected) in planned.iter().zip(list(&expected["fragments"])) {
                        assert_eq!(planned.start, number(&expected["start"]), "{place}");
                        assert_eq!(planned.propagated, number(&expected["propagated"]), "{place}");
                    }
                }
            }
        }
        cases += 1;
    }
    assert!(cases >= 12, "only {cases} golden cases found");
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}
