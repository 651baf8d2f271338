//! What there was no room for can be seen, and the program goes on.

use std::thread;

use ddbx_protocol::link::{Address, Keys};
use ddbx_protocol::session::ProcessIndex;
use ddbx_protocol::{DroppedHere, Status};
use ddbx_tests::puppet::Puppet;
use ddbx_tests::waiting::until;

use crate::cluster::Cluster;

const DROPPED: DroppedHere = DroppedHere { events: 11, names: 12, watched: 13, peers: 14 };

/// Plays a process that had no room for some things.
fn plays(address: Address) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let index = ProcessIndex(77);
        let mut puppet = Puppet::attach(&address, &Keys::default(), "full", index).await.unwrap();
        let status = Status { dropped: DROPPED, ..Status::default() };
        // Until the session ends.
        let _ = puppet.play(&status, &[]).await;
    });
}

#[test]
fn what_was_dropped_is_listed() {
    let (cluster, _central) = Cluster::open();
    let nothing = cluster.json(&["ps"]);
    assert_eq!(nothing["dropped"]["events"], 0, "{nothing}");
    assert!(!cluster.ddbx(&["ps"]).well().contains("room"));
    let address = Address::Unix(cluster.path("run/ddbx/main.sock"));
    let full = thread::spawn(move || plays(address));
    let view = until("it says what it had no room for", || {
        let ps = cluster.json(&["ps"]);
        let view = ps["processes"].as_array().unwrap().first().cloned();
        view.filter(|view| view["dropped"]["events"] != 0)
    });
    assert_eq!(view["dropped"], serde_json::to_value(DROPPED).unwrap());
    assert!(cluster.ddbx(&["ps"]).well().contains("there was not room for everything"));
    cluster.ddbx(&["stop"]).well();
    full.join().unwrap();
}
