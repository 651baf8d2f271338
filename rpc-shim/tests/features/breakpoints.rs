//! Breakpoints of all kinds, pauses, and what a test can check.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use ddbx::test::{Scope, Session, Wanted};
use futures::FutureExt as _;

use crate::services::{Actor, LabClient, MS, connect, until, within};

const ARRIVE: &str = "lab:Lab.act@arrive";

fn wanted() -> Wanted {
    Wanted { spec: ARRIVE.to_owned(), scope: Scope::Call, ..Wanted::default() }
}

macro_rules! lab {
    ($session:expr) => {
        connect!(LabClient, $session.process("client"), $session.process("lab"), Actor::echo())
    };
}

/// Makes a call with this number in a task.
macro_rules! call {
    ($lab:expr, $number:expr) => {{
        let (lab, number) = ($lab.clone(), $number);
        tokio::spawn(async move { lab.act(within(20_000 * MS), number).await })
    }};
}

#[tokio::test]
async fn once_is_once() {
    let session = ddbx::test::session().await;
    let lab = lab!(session);
    let hit = session.break_at(Wanted { once: true, ..wanted() });
    let first = call!(lab, 1);
    let held = hit.next().await;
    held.resume();
    first.await.unwrap().unwrap();
    for number in 2..10 {
        call!(lab, number).await.unwrap().unwrap();
    }
    session.assert_nothing_held();
}

/// In all processes together.
#[tokio::test]
async fn once_in_any_of_several_processes() {
    let session = ddbx::test::session().await;
    let client = session.process("client");
    let labs = ["lab", "lab"]
        .map(|name| connect!(LabClient, client.clone(), session.process(name), Actor::echo()));
    let hit = session.break_at(Wanted { once: true, ..wanted() });
    let calls = labs.each_ref().map(|lab| call!(lab, 1));
    hit.next().await.resume();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    session.assert_nothing_held();
}

#[tokio::test]
async fn the_first_ones_are_ignored() {
    let session = ddbx::test::session().await;
    let lab = lab!(session);
    let hit = session.break_at(Wanted { ignore: 2, ..wanted() });
    for number in [1, 2] {
        call!(lab, number).await.unwrap().unwrap();
    }
    session.assert_nothing_was_held();
    let third = call!(lab, 3);
    let held = hit.next().await;
    assert_eq!(session.holds()[0].args.as_ref().unwrap()["number"], 3);
    held.resume();
    third.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_hold_can_end_by_itself() {
    let session = ddbx::test::session().await;
    let lab = lab!(session);
    let _hit = session.break_at(Wanted { hold_for: Some(300 * MS), ..wanted() });
    let start = Instant::now();
    call!(lab, 1).await.unwrap().unwrap();
    assert!(start.elapsed() >= 300 * MS);
    session.assert_nothing_held();
}

#[tokio::test]
async fn a_paused_process_goes_on_with_its_guard() {
    let session = ddbx::test::session().await;
    let lab = lab!(session);
    call!(lab, 0).await.unwrap().unwrap();
    let paused = session.pause("lab");
    let call = call!(lab, 1);
    until(|| session.held() == 1).await;
    tokio::time::sleep(50 * MS).await;
    assert!(!call.is_finished());
    assert_eq!(session.holds()[0].at, "Lab.act@arrive");
    drop(paused);
    call.await.unwrap().unwrap();
    session.assert_nothing_held();
}

/// The end of a pause is not the end of a hold at a breakpoint.
#[tokio::test]
async fn the_end_of_a_pause_ends_only_the_pause() {
    let session = ddbx::test::session().await;
    let lab = lab!(session);
    let hit = session.breakpoint_on_call(ARRIVE);
    let call = call!(lab, 1);
    let held = hit.next().await;
    drop(session.pause("lab"));
    tokio::time::sleep(50 * MS).await;
    assert_eq!(session.held(), 1);
    assert!(!call.is_finished());
    held.resume();
    call.await.unwrap().unwrap();
}

#[tokio::test]
#[should_panic(expected = "no process \"labb\" takes part; there is client, lab")]
async fn a_pause_of_nobody_is_refused() {
    let session = ddbx::test::session().await;
    let _lab = lab!(session);
    let _paused = session.pause("labb");
}

#[tokio::test]
#[should_panic(expected = "somebody stands still")]
async fn a_hold_is_noticed() {
    let session = ddbx::test::session().await;
    let lab = lab!(session);
    let hit = session.breakpoint(ARRIVE);
    let _call = call!(lab, 1);
    let _held = hit.next().await;
    session.assert_nothing_held();
}

#[tokio::test]
#[should_panic(expected = "stood still at some time")]
async fn a_hold_is_remembered() {
    let session = ddbx::test::session().await;
    let lab = lab!(session);
    session.assert_nothing_was_held();
    let hit = session.breakpoint(ARRIVE);
    let call = call!(lab, 1);
    hit.next().await.resume();
    call.await.unwrap().unwrap();
    session.assert_nothing_held();
    session.assert_nothing_was_held();
}

/// A test that panics lets go all that it holds, whatever it holds it with.
#[tokio::test]
async fn a_panic_lets_go() {
    async fn panics(session: &Session, spec: &str) {
        let hit = session.breakpoint(spec);
        let _held = hit.next().await;
        panic!("as a test does");
    }
    let session = ddbx::test::session().await;
    let lab = lab!(session);
    let call = call!(lab, 1);
    assert!(AssertUnwindSafe(panics(&session, ARRIVE)).catch_unwind().await.is_err());
    call.await.unwrap().unwrap();

    let whole = async {
        let session = ddbx::test::session().await;
        let lab = lab!(session);
        let _hit = session.breakpoint(ARRIVE);
        let call = call!(lab, 1);
        until(|| session.held() == 1).await;
        let _paused = session.pause("client");
        assert_eq!(session.held(), 2, "as a test that fails");
        drop(call);
    };
    assert!(AssertUnwindSafe(whole).catch_unwind().await.is_err());
}

/// Dropping a breakpoint lets go whoever stands at it and was not asked for.
#[tokio::test]
async fn a_breakpoint_that_is_dropped_keeps_nobody() {
    let session = ddbx::test::session().await;
    let lab = lab!(session);
    let hit = session.breakpoint_on_call(ARRIVE);
    let calls: Vec<_> = (0..10).map(|number| call!(lab, number)).collect();
    until(|| session.standing() == 10).await;
    drop(hit);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    session.assert_nothing_held();
}
