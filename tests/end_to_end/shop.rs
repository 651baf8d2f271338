//! The shop is held again and again for longer than its deadlines and leases, and does
//! not notice.

use ddbx_tests::waiting::until;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::process::Process;

/// All clocks of the shop are so much slower, and so are the holds: a busy machine must
/// not be taken for a deadline that passed. Its deadlines are of 200 ms.
const SLOWER: u64 = 4;
const HELD_MS: u64 = 300 * SLOWER;

#[test]
fn nothing_times_out_in_twenty_holds() {
    let (cluster, _central) = Cluster::open();
    let slower = SLOWER.to_string();
    let start = |service: &str| {
        Process::start(&mut cluster.actor(&["shop", service], &["--slower", &slower]))
    };
    let _services: Vec<_> = ddbx_shop::services().iter().map(|service| start(service)).collect();
    let mut traffic = start("traffic");
    let served = |name: &str| {
        let ps = cluster.json(&["ps"]);
        let view = ps["processes"].as_array().unwrap().iter().find(|view| view["name"] == name);
        view.map_or(0, |view| view["served"].as_u64().unwrap())
    };
    until("traffic flows", || (served("gateway") > 10).then_some(()));

    let length = format!("{HELD_MS}ms");
    let places = ["inventory:Inventory.reserve@arrive", "payments:Payments.charge@return"];
    for number in 0..20 {
        let breakpoint =
            cluster.set_break(&[places[number % places.len()], "--once", "--for", &length]);
        let id = cluster.hit(&breakpoint)["id"].clone();
        until("the hold is over", || {
            cluster.holds().iter().all(|hold| hold["id"] != id).then_some(())
        });
    }
    traffic.close_stdin();
    assert!(traffic.end().success());
    let report: Value = serde_json::from_str(&traffic.printed()).unwrap();
    assert!(report["ok"].as_u64().unwrap() > 20, "{report}");
    assert!(report["slowest_ms"].as_u64().unwrap() >= HELD_MS, "{report}");
    for none in ["deadline_errors", "other_errors", "refused", "leases_lost"] {
        assert_eq!(report[none], 0, "{report}");
    }
}
