//! A test forces an order that would be rare otherwise.

#![allow(clippy::unwrap_used)]

mod services;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ddbx::test::HoldView;
use services::{Actor, LabClient, MS, connect, until, within};
use tarpc::client::RpcError;
use tokio::task::JoinHandle;

/// A handler that notes when it passes each of its steps.
fn noting() -> (Actor, Arc<Mutex<Vec<String>>>) {
    let steps: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = steps.clone();
    let actor = Actor::new(move |_, number| {
        let steps = noted.clone();
        async move {
            let note = |step| steps.lock().unwrap().push(format!("{step}{number}"));
            note("read");
            ddbx::point!("between", number = number).await;
            note("written");
            ddbx::time::sleep(20 * MS).await;
            note("slept");
            number
        }
    });
    (actor, steps)
}

macro_rules! call {
    ($lab:expr, $number:expr) => {{
        let (lab, number) = ($lab.clone(), $number);
        tokio::spawn(async move { lab.act(within(3_000 * MS), number).await })
    }};
}

async fn finishes(call: JoinHandle<Result<u64, RpcError>>) -> u64 {
    let soon = tokio::time::timeout(Duration::from_secs(20), call);
    soon.await.expect("it finishes").unwrap().unwrap()
}

/// Two calls stand at a breakpoint, the first one first.
macro_rules! both_held {
    ($session:expr, $lab:expr, $hit:expr) => {{
        let first = call!($lab, 1);
        until(|| $session.standing() == 1).await;
        let second = call!($lab, 2);
        let [a, b] = <[_; 2]>::try_from($hit.all(2).await).ok().unwrap();
        (first, second, a, b)
    }};
}

#[tokio::test]
async fn the_second_overtakes_the_first() {
    let session = ddbx::test::session().await;
    let (actor, steps) = noting();
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
    let hit = session.breakpoint_on_call("lab:Lab.act@arrive");
    let (first, second, a, b) = both_held!(session, lab, hit);
    b.release();
    assert_eq!(finishes(second).await, 2, "it goes all the way while the first is held");
    assert!(!first.is_finished());
    assert_eq!(*steps.lock().unwrap(), ["read2", "written2", "slept2"]);
    a.resume();
    assert_eq!(finishes(first).await, 1);
    assert_eq!(steps.lock().unwrap()[3..], ["read1", "written1", "slept1"]);
    session.assert_nothing_held();
}

#[tokio::test]
async fn without_force_the_second_waits_for_the_first() {
    let session = ddbx::test::session().await;
    let (actor, steps) = noting();
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
    let hit = session.breakpoint_on_call("lab:Lab.act@arrive");
    let (first, second, a, b) = both_held!(session, lab, hit);
    b.resume();
    tokio::time::sleep(300 * MS).await;
    assert!(!second.is_finished() && steps.lock().unwrap().is_empty(), "it waits for its turn");
    a.resume();
    // Neither is stopped again.
    assert_eq!((finishes(first).await, finishes(second).await), (1, 2));
    assert_eq!(steps.lock().unwrap()[0], "read1");
    session.assert_nothing_held();
}

/// In the order in which they came, if the test does not want another one.
#[tokio::test]
async fn one_after_the_other() {
    let session = ddbx::test::session().await;
    let (actor, steps) = noting();
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
    let hit = session.breakpoint_on_call("lab:Lab.act@arrive");
    let (first, second, a, b) = both_held!(session, lab, hit);
    a.resume();
    until(|| !steps.lock().unwrap().is_empty()).await;
    tokio::time::sleep(100 * MS).await;
    let so_far = steps.lock().unwrap().clone();
    assert!(so_far[0] == "read1" && !so_far.contains(&"read2".to_owned()), "{so_far:?}");
    assert!(!second.is_finished(), "it stands at the breakpoint in its own right");
    b.resume();
    assert_eq!((finishes(first).await, finishes(second).await), (1, 2));
    session.assert_nothing_held();
}

/// Both have read before either writes: a lost update, whenever one wants to see it.
#[tokio::test]
async fn two_meet_inside_a_handler() {
    let session = ddbx::test::session().await;
    let (actor, steps) = noting();
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
    let hit = session.breakpoint_on_call("lab:point(between)");
    let (first, second, a, b) = both_held!(session, lab, hit);
    assert_eq!(*steps.lock().unwrap(), ["read1", "read2"]);
    b.release();
    assert_eq!(finishes(second).await, 2);
    a.resume();
    assert_eq!(finishes(first).await, 1);
    let all = ["read1", "read2", "written2", "slept2", "written1", "slept1"];
    assert_eq!(*steps.lock().unwrap(), all);
}

/// On their way there they sleep and call others; their deadlines wait all the same.
#[tokio::test]
async fn they_come_by_different_ways() {
    let session = ddbx::test::session().await;
    let (middle, lab) = (session.process("middle"), session.process("lab"));
    let inner = connect!(LabClient, middle.clone(), lab.clone(), Actor::echo());
    let actor = Actor::new(move |ctx, number| {
        let inner = inner.clone();
        async move {
            ddbx::time::sleep(50 * MS).await;
            inner.act(ctx, number).await.unwrap()
        }
    });
    let far = connect!(LabClient, session.process("one"), middle, actor);
    let near = connect!(LabClient, session.process("two"), lab, Actor::echo());
    let hit = session.breakpoint_if("lab:Lab.act@return", "args.number < 3");
    let first = call!(near, 1);
    until(|| session.standing() == 1).await;
    let second = call!(far, 2);
    let [a, b] = <[_; 2]>::try_from(hit.all(2).await).ok().unwrap();
    tokio::time::sleep(3_500 * MS).await;
    b.release();
    assert_eq!(finishes(second).await, 2);
    a.resume();
    assert_eq!(finishes(first).await, 1);
    session.assert_nothing_held();
}

/// Any order of three that the test chooses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_order_of_three() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let session = ddbx::test::session().await;
        let (actor, steps) = noting();
        let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
        let hit = session.breakpoint_if("lab:Lab.act@arrive", "args.number < 3");
        let calls = [0, 1, 2].map(|number| call!(lab, number));
        let mut held: Vec<_> = hit.all(3).await.into_iter().map(Some).collect();
        let number = |hold: &HoldView| hold.args.as_ref().unwrap()["number"].as_u64().unwrap();
        let numbers: Vec<u64> = session.holds().iter().map(number).collect();
        let mut expected = Vec::new();
        for nth in order {
            held[nth].take().unwrap().release();
            expected.push(format!("slept{}", numbers[nth]));
            until(|| steps.lock().unwrap().contains(expected.last().unwrap())).await;
        }
        for call in calls {
            finishes(call).await;
        }
        let steps = steps.lock().unwrap();
        let slept: Vec<_> = steps.iter().filter(|step| step.starts_with("slept")).collect();
        assert_eq!(slept, expected.iter().collect::<Vec<_>>());
    }
}
