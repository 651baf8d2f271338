//! Whoever does not belong to a session, and whoever says that it is somebody else.

use std::process::Command;

use ddbx_protocol::ProcessIndex;
use ddbx_protocol::link::{Address, Keys};
use ddbx_tests::puppet::Puppet;
use ddbx_tests::waiting::until;
use serde_json::Value;

use crate::cluster::Cluster;

/// The short version of what `intrude` does before a release.
#[test]
fn strangers_of_every_kind_are_refused_and_hear_nothing() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_intrude"));
    let output = command.args(["--attempts", "84", "--seed", "1", "--json"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let complained = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}{complained}");
    let report: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["is_well"], true, "{said}");
    let kinds = report["kinds"].as_array().unwrap();
    assert!(kinds.len() >= 40, "{said}");
    for kind in kinds {
        match kind["skipped"].as_str() {
            Some(why) => eprintln!("skipped: {} ({why})", kind["kind"]),
            None => assert!(kind["attempts"].as_u64().unwrap() > 0, "{kind}"),
        }
    }
}

/// It gets a number behind the name, and nothing of what the other one has.
#[test]
fn a_process_that_claims_the_name_of_another_gets_nothing_of_it() {
    let (cluster, _central) = Cluster::open();
    let _a = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    cluster.until_present(&["a", "caller"]);
    caller.warm_up(&["a"]);
    let breakpoint = cluster.set_break(&["a#1:Walker.walk@arrive"]);
    caller.walk("held", 1_000, &[("a", 0)]);
    let held = cluster.hit(&breakpoint);
    assert_eq!(held["process"], "a");

    let mut impostor = cluster.walker_at("a", "impostor");
    cluster.until_present(&["a", "a#2", "caller"]);
    let held = |holds: &[Value]| holds.iter().any(|hold| hold["process"] == "a");
    assert!(held(&cluster.holds()), "{:?}", cluster.holds());
    // What it is told to do concerns it alone, and when it goes only it is gone.
    cluster.ddbx(&["continue", "a#2"]).well();
    assert!(held(&cluster.holds()), "{:?}", cluster.holds());
    impostor.kill();
    cluster.until_present(&["a", "caller"]);
    cluster.hold("held for long", |hold| hold["held_ms"].as_u64().unwrap() > 1_200);
    assert!(!caller.has_ended("held"));
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome("held").what, "ok");
}

/// Processes know each other's numbers: that alone must not be enough to take the place
/// of another.
#[test]
fn a_process_that_claims_the_number_of_another_stays_out() {
    let (cluster, _central) = Cluster::open();
    let address = Address::Unix(cluster.path("run/ddbx/main.sock"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let attach = |name| {
            Puppet::attach(&address, &Keys { secret: None, tls: None }, name, ProcessIndex(7))
        };
        let _first = attach("a").await.unwrap();
        for name in ["a", "b"] {
            let refused = attach(name).await.err().unwrap();
            assert!(refused.to_string().contains("not welcome: Ok(None)"), "{refused}");
        }
        assert_eq!(cluster.present(), ["a"]);
        // Its place is free when it is gone.
        drop(_first);
        until("it is gone", || cluster.present().is_empty().then_some(()));
        assert_eq!(attach("b").await.unwrap().name, "b");
    });
}
