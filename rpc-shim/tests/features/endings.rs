//! However it ends: by a cancellation, a panic, a shutdown, the end of a process or
//! of the session. Nobody stays behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tarpc::client::RpcError;
use tokio::sync::Semaphore;

use crate::services::{Actor, LabClient, MS, Slow, SlowClient, connect, until, within};

/// Dropping a call cancels its handler, wherever it is.
#[tokio::test]
async fn a_dropped_call_cancels_wherever_it_is() {
    let session = ddbx::test::session().await;
    let service = Slow::default();
    let (dropped, started) = (service.dropped.clone(), service.started.clone());
    let slow = connect!(SlowClient, session.process("client"), session.process("slow"), service);
    let call = |millis| {
        let client = slow.clone();
        tokio::spawn(async move { client.wait(within(60_000 * MS), millis).await })
    };
    let running = call(60_000);
    started.acquire().await.unwrap().forget();
    running.abort();
    until(|| dropped.load(Ordering::SeqCst) == 1).await;
    for (place, handlers) in [
        ("client:SlowService.wait@call", 0),
        ("slow:SlowService.wait@arrive", 0),
        ("slow:SlowService.wait@return", 1),
        ("client:SlowService.wait@resume", 1),
    ] {
        let before = dropped.load(Ordering::SeqCst);
        let hit = session.breakpoint(place);
        let call = call(0);
        let held = hit.next().await;
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        until(|| session.standing() == 0).await;
        drop((hit, held));
        assert_eq!(dropped.load(Ordering::SeqCst), before + handlers, "{place}");
    }
    assert_eq!(slow.wait(within(5_000 * MS), 3).await.unwrap(), 3);
}

/// A handler that panics is like one that never answers, as with tarpc alone.
#[tokio::test]
async fn a_panicking_handler_leaves_nothing() {
    let session = ddbx::test::session().await;
    let actor = Actor::new(|_, number| async move {
        ddbx::point!("before").await;
        assert!(number != 1, "a handler's own panic");
        number
    });
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
    let hit = session.breakpoint("lab:point(before)");
    let client = lab.clone();
    let call = tokio::spawn(async move { client.act(within(500 * MS), 1).await });
    let held = hit.next().await;
    tokio::time::sleep(700 * MS).await;
    drop(hit);
    held.resume();
    let outcome = call.await.unwrap();
    assert!(matches!(outcome, Err(RpcError::DeadlineExceeded)), "{outcome:?}");
    assert_eq!(lab.act(within(5_000 * MS), 2).await.unwrap(), 2);
    session.assert_nothing_held();
}

/// What stands in a runtime that shuts down is gone, and holds nobody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runtime_that_shuts_down() {
    for place in ["server", "client"] {
        let session = ddbx::test::session().await;
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let (client, lab) = (session.process("client"), session.process("lab"));
        let (other, server) = (session.process("other"), lab.clone());
        let (enter, event) = (runtime.enter(), if place == "server" { "arrive" } else { "call" });
        let far = connect!(LabClient, client, lab, Actor::echo());
        drop(enter);
        let near = connect!(LabClient, other, server, Actor::echo());
        let process = if place == "server" { "lab" } else { "client" };
        let hit = session.breakpoint_on_call(&format!("{process}:Lab.act@{event}"));
        let call = async move { far.act(within(20_000 * MS), 1).await };
        let call = if place == "server" { tokio::spawn(call) } else { runtime.spawn(call) };
        let held = hit.next().await;
        drop(hit);
        runtime.shutdown_background();
        assert!(!matches!(call.await, Ok(Ok(_))), "{place}");
        until(|| session.standing() == 0).await;
        assert_eq!(near.act(within(20_000 * MS), 2).await.unwrap(), 2);
        drop(held);
    }
}

/// A process that leaves takes its holds along: those who waited for it go on.
#[tokio::test]
async fn a_process_that_leaves_while_it_is_held() {
    let session = ddbx::test::session().await;
    let lab = session.process("lab");
    let near = connect!(LabClient, session.process("other"), lab.clone(), Actor::echo());
    near.act(within(5_000 * MS), 0).await.unwrap();
    let leaving = session.process("leaving");
    let far = connect!(LabClient, leaving.clone(), lab, Actor::echo());
    far.act(within(5_000 * MS), 0).await.unwrap();
    let hit = session.breakpoint("leaving:Lab.act@call");
    let held_call = tokio::spawn(async move { far.act(within(1_000 * MS), 1).await });
    let held = hit.next().await;
    let waiting = tokio::spawn(async move { near.act(within(1_000 * MS), 2).await });
    until(|| session.standing() == 2).await;
    tokio::time::sleep(1_300 * MS).await;
    assert!(!waiting.is_finished(), "the held call could still come before it");
    held_call.abort();
    drop(leaving);
    assert_eq!(waiting.await.unwrap().unwrap(), 2, "and nothing has timed out");
    drop((held, hit));
    session.assert_nothing_held();
}

/// The session ends while calls stand everywhere: all of them complete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_with_many_held() {
    let session = ddbx::test::session().await;
    let (client, lab) = (session.process("client"), session.process("lab"));
    let counted = Arc::new(AtomicU32::new(0));
    let counts = counted.clone();
    let actor = Actor::new(move |_, number| {
        let counted = counts.clone();
        async move {
            ddbx::point!("in").await;
            counted.fetch_add(1, Ordering::SeqCst);
            number
        }
    });
    let lab = connect!(LabClient, client, lab, actor);
    let hits = ["client:Lab.act@resume", "lab:point(in)", "lab:Lab.act@arrive"]
        .map(|spec| session.breakpoint_on_call(spec));
    let calls: Vec<_> = (0..50)
        .map(|number| {
            let client = lab.clone();
            tokio::spawn(async move { client.act(within(1_000 * MS), number).await })
        })
        .collect();
    until(|| session.standing() >= 50).await;
    std::mem::forget(session.pause("client"));
    tokio::time::sleep(1_300 * MS).await;
    std::mem::forget(hits);
    drop(session);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(counted.load(Ordering::SeqCst), 50);
}

/// A control whose end nobody waits for ends as well.
#[tokio::test]
async fn a_background_task_that_is_aborted_while_it_is_held() {
    let session = ddbx::test::session().await;
    let process = session.process("worker");
    let started = Arc::new(Semaphore::new(0));
    let signal = started.clone();
    let hit = session.breakpoint("worker:point(work)");
    let task = process.spawn("loop", async move {
        signal.add_permits(1);
        ddbx::point!("work").await;
    });
    started.acquire().await.unwrap().forget();
    let held = hit.next().await;
    task.abort();
    until(|| session.standing() == 0).await;
    held.resume();
    session.assert_nothing_held();
}
