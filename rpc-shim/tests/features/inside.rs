//! Controls that wait inside the program for one that is held.

use std::sync::Arc;
use std::time::Duration;

use tarpc::client::RpcError;
use tokio::sync::{Mutex, Semaphore};

use crate::services::{Actor, LabClient, MS, connect, within};

const DEADLINE: Duration = Duration::from_millis(1_000);
const HELD: Duration = Duration::from_millis(1_800);

/// The first call takes a lock and is held while it has it; the second one, of
/// another client, waits for the lock longer than its deadline.
async fn waits_for_a_lock(spec: &str, on_call: bool) {
    let session = ddbx::test::session().await;
    let server = session.process("lab");
    let (has_lock, wants_lock, go_on) =
        (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let signals = (has_lock.clone(), wants_lock.clone(), go_on.clone());
    let lock = Arc::new(Mutex::new(()));
    let actor = Actor::new(move |_, number| {
        let ((has_lock, wants_lock, go_on), lock) = (signals.clone(), lock.clone());
        async move {
            if number == 1 {
                let _guard = lock.lock().await;
                has_lock.add_permits(1);
                go_on.acquire().await.unwrap().forget();
                ddbx::point!("inside").await;
            } else {
                wants_lock.add_permits(1);
                let _guard = lock.lock().await;
            }
            number
        }
    });
    let first = connect!(LabClient, session.process("one"), server.clone(), actor.clone());
    let second = connect!(LabClient, session.process("two"), server, actor);
    let hit = match on_call {
        true => session.breakpoint_on_call(spec),
        false => session.breakpoint(spec),
    };
    let first = tokio::spawn(async move { first.act(within(DEADLINE), 1).await });
    has_lock.acquire().await.unwrap().forget();
    let second = tokio::spawn(async move { second.act(within(DEADLINE), 2).await });
    wants_lock.acquire().await.unwrap().forget();
    go_on.add_permits(1);
    let held = hit.next().await;
    tokio::time::sleep(HELD).await;
    assert!(!second.is_finished(), "it waits for the lock");
    held.resume();
    assert_eq!(first.await.unwrap().unwrap(), 1);
    assert_eq!(second.await.unwrap().unwrap(), 2);
    session.assert_nothing_held();
}

#[tokio::test]
async fn for_a_call_that_is_held() {
    waits_for_a_lock("lab:point(inside)", true).await;
}

#[tokio::test]
async fn for_a_process_that_is_held() {
    waits_for_a_lock("lab:point(inside)", false).await;
}

/// Without a hold a wait inside counts like any other time.
#[tokio::test]
async fn a_wait_that_is_too_long_still_times_out() {
    let session = ddbx::test::session().await;
    let actor = Actor::new(|_, number| async move {
        std::future::pending::<()>().await;
        number
    });
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
    // Somebody looks, but nobody is held.
    let _elsewhere = session.breakpoint("lab:point(nowhere)");
    let outcome = lab.act(within(100 * MS), 1).await;
    assert!(matches!(outcome, Err(RpcError::DeadlineExceeded)), "{outcome:?}");
    session.assert_nothing_held();
}

/// A handler that starts a call and does not wait for it leaves nothing behind when
/// both have ended: a hold that comes later does not concern its client.
#[tokio::test]
async fn a_call_that_outlives_its_handler_leaves_nothing() {
    let session = ddbx::test::session().await;
    let (client, middle) = (session.process("client"), session.process("middle"));
    let go_on = Arc::new(Semaphore::new(0));
    let waiting = go_on.clone();
    let last = Actor::new(move |_, number| {
        let go_on = waiting.clone();
        async move {
            go_on.acquire().await.unwrap().forget();
            number
        }
    });
    let inner = connect!(LabClient, middle.clone(), session.process("end"), last);
    let done = Arc::new(Semaphore::new(0));
    let all_done = done.clone();
    let actor = Actor::new(move |ctx, number| {
        let (inner, done) = (inner.clone(), all_done.clone());
        async move {
            if number == 1 {
                tokio::spawn(async move {
                    inner.act(ctx, 1).await.unwrap();
                    done.add_permits(1);
                });
                // Long enough for the call to be on its way.
                ddbx::time::sleep(50 * MS).await;
            }
            number
        }
    });
    let outer = connect!(LabClient, client.clone(), middle.clone(), actor.clone());
    let other = connect!(LabClient, session.process("other"), middle, actor);
    let aside = connect!(LabClient, client, session.process("far"), Actor::echo());
    aside.act(within(20_000 * MS), 0).await.unwrap();
    // While there is a breakpoint, it is noted who waits where.
    let hit = session.breakpoint_if("middle:Lab.act@arrive", "args.number == 2");
    outer.act(within(20_000 * MS), 1).await.unwrap();
    go_on.add_permits(1);
    done.acquire().await.unwrap().forget();

    let call = tokio::spawn(async move { other.act(within(20_000 * MS), 2).await });
    let held = hit.next().await;
    let aside = tokio::time::timeout(Duration::from_secs(10), aside.act(within(20_000 * MS), 3));
    assert_eq!(aside.await.expect("nothing of the client is held").unwrap(), 3);
    held.resume();
    call.await.unwrap().unwrap();
}
