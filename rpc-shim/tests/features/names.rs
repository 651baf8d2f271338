//! Names of controls: the same in every run, and kept on all ways through a program.

use std::collections::BTreeSet;

use ddbx::test::Session;
use tarpc::context;

use crate::services::{
    Actor, FrontClient, LabClient, MS, Shop, Slow, SlowClient, connect, until, within,
};

/// The controls that stand still.
fn standing(session: &Session) -> Vec<String> {
    session.holds().iter().map(|hold| hold.control.as_ref().unwrap().to_string()).collect()
}

async fn names_of_a_run() -> BTreeSet<String> {
    let session = ddbx::test::session().await;
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), Actor::echo());
    let hit = session.breakpoint("lab:Lab.act@arrive");
    // Two of each kind, so that they are also numbered.
    let call = |number: u64| {
        let client = lab.clone();
        tokio::spawn(async move { client.act(within(20_000 * MS), number / 2).await })
    };
    let calls: Vec<_> = (0..16).map(call).collect();
    let held = hit.next().await;
    until(|| session.standing() >= 16).await;
    let names = standing(&session).into_iter().collect();
    drop(hit);
    held.resume();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn names_by_content_are_the_same_in_every_run() {
    let first = names_of_a_run().await;
    assert_eq!(first.len(), 16, "all different: {first:#?}");
    assert!(first.iter().all(|name| name.starts_with("client/Lab.act-")), "{first:#?}");
    for _ in 0..5 {
        assert_eq!(names_of_a_run().await, first);
    }
}

#[tokio::test]
async fn given_names_win() {
    let session = ddbx::test::session().await;
    let (client, slow) = (session.process("client"), session.process("slow"));
    let slow = connect!(SlowClient, client.clone(), slow, Slow::default());
    let hit = session.breakpoint("slow:SlowService.wait@arrive");
    for expected in ["client/loop", "client/loop-2"] {
        let slow = slow.clone();
        let task = client.spawn("loop", async move { slow.wait(within(20_000 * MS), 0).await });
        let held = hit.next().await;
        assert_eq!(standing(&session), [expected]);
        held.resume();
        task.await.unwrap().unwrap();
    }
}

/// A child is named after the call in which it was started.
#[tokio::test]
async fn children_are_named_after_their_parents() {
    let session = ddbx::test::session().await;
    let (client, lab) = (session.process("client"), session.process("lab"));
    let actor = Actor::new(|_, number| async move {
        let child = || async { ddbx::point!("born").await };
        let (first, second) = (ddbx::spawn("audit", child()), ddbx::spawn("audit", child()));
        first.await.unwrap();
        second.await.unwrap();
        number
    });
    let lab = connect!(LabClient, client.clone(), lab, actor);
    let hit = session.breakpoint("lab:point(born)");
    let task = client.spawn("main", async move {
        lab.act(within(20_000 * MS), 1).await.unwrap();
        lab.act(within(20_000 * MS), 1).await.unwrap();
    });
    let mut seen = Vec::new();
    for _ in 0..4 {
        let held = hit.next().await;
        let at_the_point = |hold: &&_| hold_is_at(hold, "point(born)");
        let holds = session.holds();
        let hold = holds.iter().find(at_the_point).unwrap();
        seen.push(hold.control.as_ref().unwrap().to_string());
        held.resume();
    }
    task.await.unwrap();
    let expected = [
        "client/main!1/audit",
        "client/main!1/audit-2",
        "client/main!2/audit",
        "client/main!2/audit-2",
    ];
    assert_eq!(seen, expected);
}

fn hold_is_at(hold: &ddbx::test::HoldView, place: &str) -> bool {
    hold.at == place && hold.breakpoint.is_some()
}

#[tokio::test]
async fn nested_calls_keep_the_control() {
    let session = ddbx::test::session().await;
    let (client, front, slow) =
        (session.process("client"), session.process("front"), session.process("slow"));
    let inner = connect!(SlowClient, front.clone(), slow, Slow::default());
    let outer = connect!(FrontClient, client.clone(), front, Shop { inner });
    let hit = session.breakpoint("slow:SlowService.wait@arrive");
    let task = client.spawn("main", async move { outer.ask(within(20_000 * MS), 0).await });
    let held = hit.next().await;
    assert_eq!(standing(&session), ["client/main"]);
    held.resume();
    task.await.unwrap().unwrap();
}

/// One from outside has no name until somebody asks: whoever does, and wherever, is told the same.
#[tokio::test]
async fn nested_calls_of_one_from_outside_keep_its_name() {
    let session = ddbx::test::session().await;
    let (client, front, slow) =
        (session.process("client"), session.process("front"), session.process("slow"));
    let inner = connect!(SlowClient, front.clone(), slow, Slow::default());
    let outer = connect!(FrontClient, client, front, Shop { inner });
    // So all have met, as they have when a program has run for a while.
    outer.ask(within(20_000 * MS), 0).await.unwrap();
    let breakpoints = ["front:Front.ask@arrive", "slow:SlowService.wait@arrive"];
    let [first, second] = breakpoints.map(|place| session.breakpoint(place));
    let task = tokio::spawn(async move { outer.ask(within(20_000 * MS), 0).await });
    let held = first.next().await;
    let names = standing(&session);
    assert!(names.len() == 1 && names[0].starts_with("client/Front.ask-"), "{names:?}");
    held.resume();
    let held = second.next().await;
    assert_eq!(standing(&session), names);
    held.resume();
    task.await.unwrap().unwrap();
}

/// Where a handler leaves its task, its context leads back to it; without that, the
/// origin is lost and a new control begins.
#[tokio::test]
async fn a_context_that_is_passed_on_keeps_the_control() {
    let session = ddbx::test::session().await;
    let (client, lab, slow) =
        (session.process("client"), session.process("lab"), session.process("slow"));
    let inner = connect!(SlowClient, lab.clone(), slow, Slow::default());
    let actor = Actor::new(move |ctx, number| {
        let inner = inner.clone();
        async move {
            let ctx = if number == 1 { ctx } else { context::current() };
            tokio::spawn(async move { inner.wait(ctx, 0).await }).await.unwrap().unwrap()
        }
    });
    let lab = connect!(LabClient, client.clone(), lab, actor);
    let hit = session.breakpoint("slow:SlowService.wait@arrive");
    for (number, expected) in [(1, "client/main"), (2, "lab/SlowService.wait-")] {
        let lab = lab.clone();
        let name = if number == 1 { "main" } else { "other" };
        let task = client.spawn(name, async move { lab.act(within(20_000 * MS), number).await });
        let held = hit.next().await;
        let names = standing(&session);
        assert!(names.len() == 1 && names[0].starts_with(expected), "{names:?}");
        held.resume();
        task.await.unwrap().unwrap();
    }
}
