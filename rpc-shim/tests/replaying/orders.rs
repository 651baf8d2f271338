//! Who comes first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use ddbx::test::{Session, record, replay};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tarpc::context;

use crate::services::{Actor, LabClient, MS, connect};
use crate::{Place, comes_again, luck};

/// Ten customers, each at some time; what they order goes into a list.
async fn race(session: &Session) -> Vec<u64> {
    let (front, back) = (session.process("front"), session.process("back"));
    let list: Arc<Mutex<Vec<u64>>> = Arc::default();
    let own = list.clone();
    let takes = Actor::new(move |_, number| {
        let list = own.clone();
        async move {
            list.lock().unwrap().push(number);
            list.lock().unwrap().len() as u64
        }
    });
    let client = connect!(LabClient, front, back, takes);
    let customers: Vec<_> = (1..=10)
        .map(|number| {
            let client = client.clone();
            front.spawn(&format!("customer-{number}"), async move {
                luck(3 * MS).await;
                client.act(context::current(), number).await.unwrap();
            })
        })
        .collect();
    for customer in customers {
        customer.await.unwrap();
    }
    list.lock().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_race_ends_as_it_did() {
    comes_again(race).await;
}

/// What is looked at before a nested call may have changed after it.
async fn look_and_take(session: &Session) -> (i64, Vec<bool>) {
    let (front, shop, prices) =
        (session.process("front"), session.process("shop"), session.process("prices"));
    let slow = Actor::new(|_, number| async move {
        luck(2 * MS).await;
        number
    });
    let prices = connect!(LabClient, shop, prices, slow);
    let stock = Arc::new(Mutex::new(1_i64));
    let shelf = stock.clone();
    let sells = Actor::new(move |ctx, number| {
        let (stock, prices) = (shelf.clone(), prices.clone());
        async move {
            if *stock.lock().unwrap() <= 0 {
                return 0;
            }
            prices.act(ctx, number).await.unwrap();
            *stock.lock().unwrap() -= 1;
            1
        }
    });
    let shop = connect!(LabClient, front, shop, sells);
    let customers: Vec<_> = (0..3)
        .map(|number| {
            let shop = shop.clone();
            front.spawn("customer", async move {
                luck(4 * MS).await;
                shop.act(context::current(), number).await.unwrap() == 1
            })
        })
        .collect();
    let mut sold = Vec::new();
    for customer in customers {
        sold.push(customer.await.unwrap());
    }
    let left = *stock.lock().unwrap();
    (left, sold)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_oversell_comes_again() {
    comes_again(look_and_take).await;
}

/// Handlers that call others side by side, in branches and in tasks that they start
/// without a word.
async fn side_by_side(session: &Session) -> Vec<u64> {
    let (front, middle, back) =
        (session.process("front"), session.process("middle"), session.process("back"));
    let list: Arc<Mutex<Vec<u64>>> = Arc::default();
    let own = list.clone();
    let notes = Actor::new(move |_, number| {
        let list = own.clone();
        async move {
            luck(MS).await;
            ddbx::point!("noted", number = number).await;
            list.lock().unwrap().push(number);
            number
        }
    });
    let inner = connect!(LabClient, middle, back, notes);
    let fans_out = Actor::new(move |ctx, number| {
        let inner = inner.clone();
        async move {
            let plain: Vec<_> = (0..4)
                .map(|n| {
                    let inner = inner.clone();
                    tokio::spawn(async move { inner.act(ctx, 100 * number + n).await.unwrap() })
                })
                .collect();
            let (a, b) =
                tokio::join!(inner.act(ctx, 100 * number + 10), inner.act(ctx, 100 * number + 11));
            let mut sum = a.unwrap() + b.unwrap();
            for task in plain {
                sum += task.await.unwrap();
            }
            sum
        }
    });
    let outer = connect!(LabClient, front, middle, fans_out);
    let main = front.spawn("main", async move {
        let child = {
            let outer = outer.clone();
            ddbx::spawn("child", async move { outer.act(context::current(), 1).await.unwrap() })
        };
        let own = outer.act(context::current(), 2).await.unwrap();
        own + child.await.unwrap()
    });
    main.await.unwrap();
    list.lock().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn branches_and_plain_tasks_keep_their_order() {
    comes_again(side_by_side).await;
}

/// The first answer wins, and the other call is given up half-way.
async fn first_wins(session: &Session) -> Vec<u64> {
    let (front, back) = (session.process("front"), session.process("back"));
    let list: Arc<Mutex<Vec<u64>>> = Arc::default();
    let own = list.clone();
    let steps = Actor::new(move |_, number| {
        let list = own.clone();
        async move {
            for step in 0..4 {
                luck(MS).await;
                ddbx::point!("step").await;
                list.lock().unwrap().push(10 * number + step);
            }
            number
        }
    });
    let client = connect!(LabClient, front, back, steps);
    let main = front.spawn("main", async move {
        let mut winners = Vec::new();
        for _ in 0..8 {
            winners.push(tokio::select! {
                answer = client.act(context::current(), 1) => answer.unwrap(),
                answer = client.act(context::current(), 2) => answer.unwrap(),
            });
        }
        // What others did until then comes before this.
        client.act(context::current(), 3).await.unwrap();
        winners
    });
    let mut all = main.await.unwrap();
    all.extend(list.lock().unwrap().iter());
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_given_up_is_given_up_at_the_same_place() {
    comes_again(first_wins).await;
}

/// A breakpoint holds a replay, and does not disturb it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_breakpoint_does_not_disturb_a_replay() {
    let place = Place::new();
    let outcome = record(place.path(), race).await;
    let again = replay(place.path(), async |session| {
        let hit = session.breakpoint("back:Lab.act@arrive");
        let holds = async {
            for _ in 0..3 {
                let held = hit.next().await;
                tokio::time::sleep(Duration::from_millis(50)).await;
                held.resume();
            }
            drop(hit);
            std::future::pending().await
        };
        tokio::select! {
            outcome = race(session) => outcome,
            outcome = holds => outcome,
        }
    })
    .await;
    assert_eq!(again, outcome);
}

/// While a test is recorded one control runs at a time; but one that blocks its thread may
/// wait for the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_blocks_a_thread_is_not_waited_for_for_ever() {
    let all = record(Place::new().path(), async |session| {
        let process = session.process("process");
        let is_blocked = Arc::new(AtomicBool::new(false));
        let blocks = is_blocked.clone();
        let (tell, told) = mpsc::channel();
        let blocked = process.spawn("blocked", async move {
            ddbx::point!("blocks").await;
            blocks.store(true, Ordering::Release);
            told.recv().unwrap()
        });
        let other = process.spawn("other", async move {
            while !is_blocked.load(Ordering::Acquire) {
                tokio::time::sleep(MS).await;
            }
            for _ in 0..50 {
                ddbx::point!("goes on").await;
            }
            tell.send(50).unwrap();
        });
        other.await.unwrap();
        blocked.await.unwrap()
    });
    assert_eq!(all.await, 50);
}

/// Each takes long between its events, and waits for all that came before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_runs_at_a_time_however_many_wait() {
    const MANY: u32 = 12;
    let all = record(Place::new().path(), async |session| {
        let process = session.process("process");
        let sum = Arc::new(Mutex::new(0));
        let tasks = (0..MANY).map(|number| {
            let sum = sum.clone();
            process.spawn(&format!("task-{number}"), async move {
                ddbx::point!("begins").await;
                let before = *sum.lock().unwrap();
                std::thread::sleep(20 * MS);
                *sum.lock().unwrap() = before + 1;
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        *sum.lock().unwrap()
    });
    assert_eq!(all.await, MANY, "somebody did not wait");
}

/// Many tasks end at nearly the same time, and whoever has started them takes them as they
/// end.
async fn taken_as_they_end(session: &Session) -> Vec<Vec<u64>> {
    let process = session.process("process");
    let main = process.spawn("main", async {
        let mut rounds = Vec::new();
        for _ in 0..8 {
            // Who has waited for a task runs on its own until the next event.
            ddbx::point!("begins").await;
            let tasks = (0..8).map(|number| {
                ddbx::spawn("task", async move {
                    ddbx::point!("done").await;
                    // The more there is to hand over, the longer is the end of a task.
                    [number; 2048]
                })
            });
            let tasks: FuturesUnordered<_> = tasks.collect();
            rounds.push(tasks.map(|ended| ended.unwrap()[0]).collect().await);
        }
        rounds
    });
    main.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_are_joined_in_the_order_in_which_they_end() {
    const RUNS: u32 = 10;
    let mut same = 0;
    for _ in 0..RUNS {
        let place = Place::new();
        let outcome = record(place.path(), taken_as_they_end).await;
        same += u32::from(replay(place.path(), taken_as_they_end).await == outcome);
    }
    // A thread may be interrupted in the moment in which it tells of the end of its task.
    assert!(same + 1 >= RUNS, "only {same} of {RUNS} came again");
}
