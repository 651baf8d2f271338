//! The shop is open: all its services as real processes.

#![allow(clippy::unwrap_used)]

mod shop;

use ddbx_shop::TrafficReport;
use rustix::process::Signal;
use shop::{Shop, eventually};

/// Deadlines that no machine is too slow for.
const UNHURRIED: u32 = 100;

#[test]
fn all_goes_well() {
    let shop = Shop::open(UNHURRIED);
    let mut traffic = shop.traffic(&["--every", "100ms"]);
    let report = traffic.report_with(|report| report.calls >= 200);
    assert!(report.slowest_ms > 0, "{report}");
    traffic.signal(Signal::TERM);
    let TrafficReport { calls, ok, leases_lost, oversold, .. } = traffic.last_report();
    assert_eq!((ok, leases_lost, oversold), (calls, Some(0), Some(0)), "of {calls} calls");
}

/// Longer than a lease, which is 3.2 s here: it has to be renewed.
#[test]
fn traffic_ends_after_its_time() {
    let shop = Shop::open(8);
    let report = shop.traffic(&["--for", "4s"]).last_report();
    assert!(report.calls > 0 && report.calls == report.ok, "{report}");
    assert_eq!((report.leases_lost, report.oversold), (Some(0), Some(0)), "{report}");
}

#[test]
fn traffic_ends_with_its_input() {
    let shop = Shop::open(UNHURRIED);
    let mut traffic = shop.traffic(&["--until-stdin-closes", "--every", "10ms"]);
    traffic.report_with(|report| report.ok > 0);
    traffic.close_stdin();
    assert!(traffic.last_report().ok > 0);
}

/// Without ddbx: whoever stops a process changes what the program does.
#[test]
fn a_stopped_process_loses_its_lease_and_orders_their_deadlines() {
    let shop = Shop::open(1);
    let mut traffic = shop.traffic(&["--every", "50ms"]);
    let before = traffic.report_with(|report| report.ok > 0 && report.leases_lost.is_some());

    shop.signal("inventory", Signal::STOP);
    let stopped = traffic.report_with(|report| {
        report.deadline_errors > before.deadline_errors
            && report.leases_lost > before.leases_lost
            && report.refused > before.refused
            && report.oversold.is_none()
    });

    shop.signal("inventory", Signal::CONT);
    traffic.report_with(|report| report.ok > stopped.ok + 10 && report.oversold.is_some());
}

#[test]
fn the_last_lamp_can_be_sold_twice() {
    let shop = Shop::open(UNHURRIED);
    eventually("both orders get the last lamp", || shop.race("0s").starts_with("oversold: 2 of 2"));
    let report = shop.traffic(&["--for", "1ms"]).last_report();
    assert!(report.oversold >= Some(1), "{report}");
}

/// However slow the machine is, it is fast enough once.
#[test]
fn who_comes_later_finds_the_shelf_empty() {
    let shop = Shop::open(UNHURRIED);
    let refused = "not oversold: 1 of 2 orders for the last lamp were taken, 0 left; refused: lamp";
    eventually("the second is too late", || shop.race("500ms").starts_with(refused));
}

#[test]
fn traffic_ends_when_all_have_bought() {
    let shop = Shop::open(UNHURRIED);
    let report = shop.traffic(&["--purchases", "7", "--customers", "3"]).last_report();
    assert_eq!((report.calls, report.ok), (21, 21), "{report}");
    assert_eq!((report.leases_lost, report.oversold), (Some(0), Some(0)), "{report}");
    let report = shop.traffic(&["--purchases", "0"]).last_report();
    assert_eq!(report.calls, 0, "{report}");
}

#[test]
fn a_service_that_comes_back_is_found_again() {
    let mut shop = Shop::open(UNHURRIED);
    let sells = |shop: &Shop| !shop.race("0s").contains("0 of 2 orders");
    assert!(sells(&shop));
    shop.restart("inventory");
    // The first orders may still meet the old connection.
    eventually("orders finds the new inventory", || sells(&shop));
}

#[test]
fn a_process_without_a_shop_says_what_is_missing() {
    let output = shop::command("inventory").env_remove("SHOP_DIR").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("SHOP_DIR is not set"));
}
