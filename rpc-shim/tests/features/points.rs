//! Labelled places in user code.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ddbx::Process;
use serde_json::json;

use crate::services::{Actor, LabClient, MS, connect, until, within};

/// A handler that passes a point, and counts how often its value is looked at.
fn looking() -> (Actor, Arc<AtomicU32>) {
    let looks = Arc::new(AtomicU32::new(0));
    let counted = looks.clone();
    let actor = Actor::new(move |_, number| {
        let looks = counted.clone();
        async move {
            let look = || {
                looks.fetch_add(1, Ordering::SeqCst);
                number
            };
            ddbx::point!("looked", item = look(), name = "apple").await;
            number
        }
    });
    (actor, looks)
}

#[tokio::test]
async fn a_point_stops_and_shows_its_values() {
    let session = ddbx::test::session().await;
    let (actor, _) = looking();
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
    let hit = session.breakpoint("lab:point(looked)");
    let call = tokio::spawn(async move { lab.act(within(5_000 * MS), 7).await });
    let held = hit.next().await;
    let holds = session.holds();
    assert_eq!(holds.len(), 1, "{holds:#?}");
    assert_eq!((holds[0].process.as_str(), holds[0].at.as_str()), ("lab", "point(looked)"));
    assert_eq!(holds[0].args, Some(json!({ "item": 7, "name": "apple" })));
    assert!(!call.is_finished());
    held.resume();
    assert_eq!(call.await.unwrap().unwrap(), 7);
}

#[tokio::test]
async fn values_are_looked_at_only_for_a_breakpoint() {
    let session = ddbx::test::session().await;
    let (actor, looks) = looking();
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
    lab.act(within(5_000 * MS), 1).await.unwrap();
    let _elsewhere = session.breakpoint("lab:point(overlooked)");
    lab.act(within(5_000 * MS), 2).await.unwrap();
    assert_eq!(looks.load(Ordering::SeqCst), 0);
    let hit = session.breakpoint("lab:point(loo*)");
    let call = tokio::spawn(async move { lab.act(within(5_000 * MS), 3).await });
    hit.next().await.resume();
    call.await.unwrap().unwrap();
    assert_eq!(looks.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn outside_a_control_or_a_session_nothing_happens() {
    fn unlooked() -> u32 {
        unreachable!("nobody looks at it")
    }
    let session = ddbx::test::session().await;
    let _everywhere = session.breakpoint("*:point(*)");
    ddbx::point!("here", value = unlooked()).await;
    ddbx::point_blocking!("here", value = unlooked());
    ddbx::watch!(value = unlooked());
    let actor = Actor::new(|_, number| async move {
        ddbx::point!("here", value = unlooked()).await;
        ddbx::watch!(value = unlooked());
        number
    });
    let (client, lab) = (Process::without_session("client"), Process::without_session("lab"));
    let lab = connect!(LabClient, client, lab, actor);
    assert_eq!(lab.act(within(5_000 * MS), 3).await.unwrap(), 3);
    session.assert_nothing_was_held();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_point_blocks_and_goes_on() {
    let session = ddbx::test::session().await;
    let actor = Actor::new(|_, number| async move {
        ddbx::point_blocking!("deep", number = number);
        number
    });
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
    let hit = session.breakpoint("lab:point(deep)");
    let call = tokio::spawn(async move { lab.act(within(1_000 * MS), 3).await });
    let held = hit.next().await;
    assert_eq!(session.holds()[0].args, Some(json!({ "number": 3 })));
    tokio::time::sleep(1_400 * MS).await;
    assert!(!call.is_finished());
    held.resume();
    assert_eq!(call.await.unwrap().unwrap(), 3, "and its deadline has not passed");
}

/// Labels come from programs: one that cannot be one is made to fit.
#[tokio::test]
async fn any_label_will_do() {
    let session = ddbx::test::session().await;
    let actor = Actor::new(|_, number| async move {
        ddbx::point!("").await;
        ddbx::point!(&format!("a (b) / {}", "在".repeat(200))).await;
        number
    });
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
    let _other = session.breakpoint("lab:point(none)");
    assert_eq!(lab.act(within(5_000 * MS), 3).await.unwrap(), 3);
}

/// Whatever its values are: they are not in the future.
#[tokio::test]
async fn a_point_does_not_keep_a_task_on_its_thread() {
    async fn passes(value: u32) -> u32 {
        let cell = Cell::new(value);
        ddbx::point!("cell", value = cell.get()).await;
        cell.get()
    }
    assert_eq!(tokio::spawn(passes(5)).await.unwrap(), 5);
}

/// A point that is never awaited leaves nothing behind.
#[tokio::test]
async fn a_forgotten_point_holds_nobody() {
    let session = ddbx::test::session().await;
    let actor = Actor::new(|_, number| async move {
        drop(ddbx::point!("looked", number = number));
        number
    });
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
    let _hit = session.breakpoint("lab:point(looked)");
    assert_eq!(lab.act(within(5_000 * MS), 3).await.unwrap(), 3);
    until(|| session.standing() == 0).await;
}
