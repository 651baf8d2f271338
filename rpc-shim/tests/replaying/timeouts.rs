//! What ran out runs out again at its place, and nothing else does.

use std::time::Duration;

use ddbx::test::{Session, record, replay};
use tarpc::client::RpcError;

use crate::services::{Actor, LabClient, MS, connect, within};
use crate::{Place, comes_again, luck};

/// Deadlines that some calls miss and some do not.
async fn deadlines(session: &Session) -> Vec<bool> {
    let (front, middle, back) =
        (session.process("front"), session.process("middle"), session.process("back"));
    let sometimes_late = Actor::new(|_, number| async move {
        luck(60 * MS).await;
        number
    });
    let inner = connect!(LabClient, middle, back, sometimes_late);
    let passes_on = Actor::new(move |ctx, number| {
        let inner = inner.clone();
        async move { inner.act(ctx, number).await.unwrap_or(0) }
    });
    let client = connect!(LabClient, front, middle, passes_on);
    let customers: Vec<_> = (1..=6)
        .map(|number| {
            let client = client.clone();
            front.spawn(&format!("customer-{number}"), async move {
                match client.act(within(30 * MS), number).await {
                    Ok(answer) => answer == number,
                    Err(RpcError::DeadlineExceeded) => false,
                    Err(other) => panic!("{other}"),
                }
            })
        })
        .collect();
    let mut answered = Vec::new();
    for customer in customers {
        answered.push(customer.await.unwrap());
    }
    answered
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_calls_miss_their_deadlines() {
    comes_again(deadlines).await;
}

/// The program's own timeouts.
async fn own_timeouts(session: &Session) -> Vec<bool> {
    let (front, back) = (session.process("front"), session.process("back"));
    let sometimes_late = Actor::new(|_, number| async move {
        luck(20 * MS).await;
        number
    });
    let client = connect!(LabClient, front, back, sometimes_late);
    let main = front.spawn("main", async move {
        let mut in_time = Vec::new();
        for number in 0..6 {
            let call = client.act(within(Duration::from_secs(5)), number);
            in_time.push(ddbx::time::timeout(10 * MS, call).await.is_ok());
            ddbx::time::sleep(MS).await;
        }
        in_time
    });
    main.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_timeouts_run_out() {
    comes_again(own_timeouts).await;
}

/// Nothing runs out that did not, also if the replay is much slower.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_replay_misses_nothing() {
    async fn calls(session: &Session, takes: Duration) -> u64 {
        let (front, back) = (session.process("front"), session.process("back"));
        let slow = Actor::new(move |_, number| async move {
            tokio::time::sleep(takes).await;
            number
        });
        let client = connect!(LabClient, front, back, slow);
        let main = front.spawn("main", async move {
            ddbx::time::sleep(Duration::from_millis(100)).await;
            client.act(within(2000 * MS), 7).await.unwrap()
        });
        main.await.unwrap()
    }
    let place = Place::new();
    assert_eq!(record(place.path(), async |session| calls(session, MS).await).await, 7);
    let slow = Duration::from_millis(2500);
    assert_eq!(replay(place.path(), async |session| calls(session, slow).await).await, 7);
}
