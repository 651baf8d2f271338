//! Breakpoints that stop only whom a condition holds for.

use serde_json::json;

use crate::services::{Actor, LabClient, MS, SlowClient, connect, until, within};
use crate::services::{Slow, SlowServiceClient};

/// Makes these calls one after the other; exactly the last one stops at the
/// breakpoint.
async fn only_the_last_stops(spec: &str, condition: &str, numbers: &[u64]) -> serde_json::Value {
    let session = ddbx::test::session().await;
    let actor = Actor::new(|_, number| async move {
        ddbx::watch!(left = 10 - number, name = "shelf");
        ddbx::point!("looked", number = number, half = number as f64 / 2.0).await;
        number * number
    });
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
    let hit = session.breakpoint_if(spec, condition);
    let (last, others) = numbers.split_last().unwrap();
    for number in others {
        assert_eq!(lab.act(within(20_000 * MS), *number).await.unwrap(), number * number);
    }
    session.assert_nothing_was_held();
    let last = *last;
    let call = tokio::spawn(async move { lab.act(within(20_000 * MS), last).await });
    let held = hit.next().await;
    let holds = session.holds();
    assert_eq!(holds.len(), 1, "{holds:#?}");
    held.resume();
    assert_eq!(call.await.unwrap().unwrap(), last * last);
    json!({ "args": holds[0].args, "result": holds[0].result })
}

#[tokio::test]
async fn on_arguments() {
    let seen = only_the_last_stops("lab:Lab.act@arrive", "args.number == 7", &[1, 8, 7]).await;
    assert_eq!(seen, json!({ "args": { "number": 7 }, "result": null }));
    only_the_last_stops("client:Lab.act@call", "args.number > 7", &[1, 7, 8]).await;
}

#[tokio::test]
async fn on_results() {
    let seen = only_the_last_stops("lab:Lab.act@return", "result == 49", &[6, 7]).await;
    assert_eq!(seen, json!({ "args": { "number": 7 }, "result": 49 }));
    let both = "args.number > 2 && result < 20";
    let seen = only_the_last_stops("client:Lab.act@resume", both, &[1, 5, 4]).await;
    assert_eq!(seen, json!({ "args": { "number": 4 }, "result": 16 }));
}

#[tokio::test]
async fn on_values_of_points_and_watched_ones() {
    only_the_last_stops("lab:point(looked)", "args.half == 2.5", &[4, 6, 5]).await;
    let watched = "watch.left < 3 && watch.name == 'shelf'";
    only_the_last_stops("lab:point(looked)", watched, &[4, 7, 8]).await;
}

#[tokio::test]
async fn on_processes_and_controls() {
    let of_lab = "process == 'lab' && control.startsWith('client/Lab.act-') && args.number == 2";
    only_the_last_stops("*:Lab.act@arrive", of_lab, &[1, 2]).await;
}

/// A replica is known by the name that the session has given it.
#[tokio::test]
async fn on_replicas() {
    let session = ddbx::test::session().await;
    let client = session.process("client");
    let first = connect!(SlowClient, client.clone(), session.process("slow"), Slow::default());
    let second = connect!(SlowClient, client, session.process("slow"), Slow::default());
    let hit = session.breakpoint_if("slow:SlowService.wait@arrive", "process == 'slow#2'");
    first.wait(within(20_000 * MS), 0).await.unwrap();
    session.assert_nothing_was_held();
    let call = tokio::spawn(async move { second.wait(within(20_000 * MS), 0).await });
    hit.next().await.resume();
    call.await.unwrap().unwrap();
}

/// What cannot be evaluated stops nobody, nor does what is not there.
#[tokio::test]
async fn errors_stop_nobody() {
    let session = ddbx::test::session().await;
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), Actor::echo());
    let _there_is_none = session.breakpoint_if("lab:Lab.act@arrive", "args.price > 3");
    let _not_yet = session.breakpoint_if("lab:Lab.act@arrive", "result == 3");
    let _of_text = session.breakpoint_if("lab:Lab.act@*", "args.number + 'a' == 'b'");
    assert_eq!(lab.act(within(20_000 * MS), 3).await.unwrap(), 3);
    session.assert_nothing_was_held();
}

#[tokio::test]
#[should_panic(expected = "  args.number ==\n                ^")]
async fn a_bad_condition_is_refused() {
    ddbx::test::session().await.breakpoint_if("lab:Lab.act@arrive", "args.number ==");
}

/// Many at once, on several threads: everybody is judged by its own arguments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_is_judged_by_its_own() {
    let session = ddbx::test::session().await;
    let slow: SlowServiceClient<_> =
        connect!(SlowClient, session.process("client"), session.process("slow"), Slow::default());
    let hit = session.breakpoint_if("slow:SlowService.wait@arrive", "args.millis == 100");
    let call = |millis| {
        let client = slow.clone();
        tokio::spawn(async move { client.wait(within(20_000 * MS), millis).await })
    };
    let mut calls: Vec<_> = (0..100).map(call).collect();
    for call in calls.drain(..) {
        call.await.unwrap().unwrap();
    }
    session.assert_nothing_was_held();
    let held_call = call(100);
    let held = hit.next().await;
    until(|| session.held() == 1).await;
    held.resume();
    assert_eq!(held_call.await.unwrap().unwrap(), 100);
}
