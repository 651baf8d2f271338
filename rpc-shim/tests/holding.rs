//! Calls that are held, with their deadlines.

#![allow(clippy::unwrap_used)]

mod services;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::{SinkExt as _, StreamExt as _};
use services::{Actor, FrontClient, LabClient, MS, Shop, Slow, SlowClient, connect, within};
use tarpc::client::RpcError;
use tarpc::transport::channel::{UnboundedChannel, unbounded};

/// Longer than the deadline of a call that is held.
const HELD: Duration = Duration::from_millis(3_000);

#[tokio::test]
async fn a_deadline_does_not_notice_a_stop() {
    let session = ddbx::test::session().await;
    let slow =
        connect!(SlowClient, session.process("client"), session.process("slow"), Slow::default());
    for event in ["call", "arrive", "return", "resume"] {
        let place = if matches!(event, "call" | "resume") { "client" } else { "slow" };
        let hit = session.breakpoint(&format!("{place}:SlowService.wait@{event}"));
        let client = slow.clone();
        let call = tokio::spawn(async move { client.wait(within(1_000 * MS), 1).await });
        let held = hit.next().await;
        tokio::time::sleep(1_400 * MS).await;
        assert_eq!(session.held(), 1, "{event}");
        held.resume();
        assert_eq!(call.await.unwrap().unwrap(), 1, "held at {event}");
    }
    assert_eq!(session.standing(), 0);
}

/// The ends of a connection over which requests take a while.
fn slow_ends<Req: Send + 'static, Resp: Send + 'static>()
-> (UnboundedChannel<Resp, Req>, UnboundedChannel<Req, Resp>) {
    let ((client_end, near), (far, server_end)) = (unbounded(), unbounded());
    let ((mut answers, mut requests), (mut asks, mut answered)) = (near.split(), far.split());
    tokio::spawn(async move {
        while let Some(Ok(request)) = requests.next().await {
            tokio::time::sleep(100 * MS).await;
            let _ = asks.send(request).await;
        }
    });
    tokio::spawn(async move {
        while let Some(Ok(answer)) = answered.next().await {
            let _ = answers.send(answer).await;
        }
    });
    (client_end, server_end)
}

/// What is left of a deadline is left from when the call leaves, not from when it was made: also
/// if nothing stands in its way where it arrives, since all know of the release by then.
#[tokio::test]
async fn a_call_that_is_held_before_it_leaves_keeps_its_deadline() {
    let session = ddbx::test::session().await;
    let (caller, callee) = (session.process("client"), session.process("slow"));
    let slow = connect!(SlowClient, caller, callee, Slow::default(), slow_ends());
    slow.wait(within(2_000 * MS), 0).await.unwrap();
    let hit = session.breakpoint("client:SlowService.wait@call");
    let client = slow.clone();
    let call = tokio::spawn(async move { client.wait(within(2_000 * MS), 200).await });
    let held = hit.next().await;
    tokio::time::sleep(HELD).await;
    held.resume();
    assert_eq!(call.await.unwrap().unwrap(), 200);
}

#[tokio::test]
async fn a_handler_that_is_too_slow_still_times_out() {
    let session = ddbx::test::session().await;
    let slow =
        connect!(SlowClient, session.process("client"), session.process("slow"), Slow::default());
    let start = Instant::now();
    let outcome = slow.wait(within(50 * MS), 60_000).await;
    assert!(matches!(outcome, Err(RpcError::DeadlineExceeded)), "{outcome:?}");
    assert!(start.elapsed() >= 50 * MS);
}

/// While another process is held: at once if that is unrelated, after the release
/// if it is related.
#[tokio::test]
async fn a_timeout_waits_only_for_what_could_come_before_it() {
    let session = ddbx::test::session().await;
    let client = session.process("client");
    let slow = connect!(SlowClient, client, session.process("slow"), Slow::default());
    let (other, far) = (session.process("other"), session.process("far"));
    let unrelated = connect!(SlowClient, other, far, Slow::default());
    // Both connections are known.
    slow.wait(within(1_000 * MS), 0).await.unwrap();
    unrelated.wait(within(1_000 * MS), 0).await.unwrap();

    let hit = session.breakpoint("slow:SlowService.wait@arrive");
    let holding = slow.clone();
    let held_call = tokio::spawn(async move { holding.wait(within(1_000 * MS), 1).await });
    let held = hit.next().await;

    let outcome = unrelated.wait(within(30 * MS), 60_000).await;
    assert!(matches!(outcome, Err(RpcError::DeadlineExceeded)), "{outcome:?}");

    let related = slow.clone();
    let late = tokio::spawn(async move { related.wait(within(30 * MS), 60_000).await });
    tokio::time::sleep(300 * MS).await;
    assert!(!late.is_finished(), "its deadline waits for the held call");
    drop(hit);
    held.resume();
    assert!(matches!(late.await.unwrap(), Err(RpcError::DeadlineExceeded)));
    held_call.await.unwrap().unwrap();
}

/// The front calls the shop; the shop is held; the front's own caller, its deadline
/// and the nested one all wait.
#[tokio::test]
async fn nested_calls_keep_their_deadlines() {
    let session = ddbx::test::session().await;
    let (client, front, slow) =
        (session.process("client"), session.process("front"), session.process("slow"));
    let inner = connect!(SlowClient, front.clone(), slow, Slow::default());
    let outer = connect!(FrontClient, client, front, Shop { inner });
    let hit = session.breakpoint_on_call("slow:SlowService.wait@return");
    let call = tokio::spawn(async move { outer.ask(within(1_000 * MS), 5).await });
    let held = hit.next().await;
    tokio::time::sleep(1_400 * MS).await;
    held.resume();
    assert_eq!(call.await.unwrap().unwrap(), 5);
}

/// No deadline passes, and the handlers start in the order in which the calls were
/// sent.
#[tokio::test]
async fn a_thousand_calls_held_by_one_breakpoint() {
    let session = ddbx::test::session().await;
    let entered: Arc<Mutex<Vec<u64>>> = Arc::default();
    let noted = entered.clone();
    let actor = Actor::new(move |_, number| {
        noted.lock().unwrap().push(number);
        async move { number }
    });
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
    let hit = session.breakpoint("lab:Lab.act@arrive");
    let call = |number| {
        let client = lab.clone();
        tokio::spawn(async move { client.act(within(2_000 * MS), number).await })
    };
    let calls: Vec<_> = (0..1_000).map(call).collect();
    let held = hit.next().await;
    tokio::time::sleep(HELD).await;
    assert!(entered.lock().unwrap().is_empty());
    drop(hit);
    held.resume();
    for (number, call) in (0..).zip(calls) {
        assert_eq!(call.await.unwrap().unwrap(), number);
    }
    assert!(entered.lock().unwrap().iter().copied().eq(0..1_000));
    session.assert_nothing_held();
}

/// On several threads nobody times out either; who enters first is luck there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_on_several_threads() {
    let session = ddbx::test::session().await;
    let slow =
        connect!(SlowClient, session.process("client"), session.process("slow"), Slow::default());
    let hit = session.breakpoint("slow:SlowService.wait@arrive");
    let call = |_| {
        let client = slow.clone();
        tokio::spawn(async move { client.wait(within(2_000 * MS), 0).await })
    };
    let calls: Vec<_> = (0..1_000).map(call).collect();
    let held = hit.next().await;
    tokio::time::sleep(HELD).await;
    drop(hit);
    held.resume();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    session.assert_nothing_held();
}

/// Two calls are held and released in the other order: an interleaving is forced.
#[tokio::test]
async fn an_order_can_be_chosen() {
    let session = ddbx::test::session().await;
    let service = Slow::default();
    let order = service.order.clone();
    let slow = connect!(SlowClient, session.process("client"), session.process("slow"), service);
    let hit = session.breakpoint_on_call("slow:point(counted)");
    let call = |number| {
        let client = slow.clone();
        tokio::spawn(async move { client.count(within(1_000 * MS), number).await })
    };
    let first = call(1);
    let held_first = hit.next().await;
    held_first.resume();
    first.await.unwrap().unwrap();
    let second = call(2);
    let held_second = hit.next().await;
    assert_eq!(*order.lock().unwrap(), [1], "the second stands before it counts");
    held_second.resume();
    second.await.unwrap().unwrap();
    assert_eq!(*order.lock().unwrap(), [1, 2]);
}

#[tokio::test]
async fn a_session_that_ends_holds_nobody() {
    let session = ddbx::test::session().await;
    let slow =
        connect!(SlowClient, session.process("client"), session.process("slow"), Slow::default());
    let hit = session.breakpoint("slow:SlowService.wait@arrive");
    let client = slow.clone();
    let call = tokio::spawn(async move { client.wait(within(1_000 * MS), 1).await });
    std::mem::forget(hit.next().await);
    tokio::time::sleep(1_400 * MS).await;
    drop(session);
    assert_eq!(call.await.unwrap().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "paused clock")]
async fn a_paused_clock_is_refused() {
    ddbx::test::session().await;
}

#[tokio::test]
#[should_panic(expected = "at which event?")]
async fn a_bad_spec_is_refused() {
    ddbx::test::session().await.breakpoint("slow:SlowService.wait");
}
