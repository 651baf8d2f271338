//! What is shared comes to the same controls in the same order.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ddbx_protocol::EventKind;
use ddbx_satellite::driver::{Handle, Perturbation};
use futures::StreamExt as _;
use futures::future::join_all;
use tarpc::server::Channel as _;
use tarpc::{client, context, server};
use tokio::task::JoinHandle;

use super::mpsc::error::{TryRecvError, TrySendError};
use super::mpsc::{channel, unbounded_channel};
use super::{Mutex, Notify, RwLock, Semaphore, TryAcquireError};
use crate::course::Wanted;
use crate::process::Process;
use crate::replaying::{each, events, luck, recording, repeats, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mutex_is_locked_in_the_same_order() {
    repeats(20, true, |_| async {
        let list = Arc::new(Mutex::new(Vec::new()));
        each(20, |n| {
            let list = list.clone();
            async move {
                luck().await;
                list.lock().await.push(n);
                luck().await;
                list.lock().await.push(n);
            }
        })
        .await;
        list.lock().await.clone()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_what_they_saw() {
    repeats(20, true, |_| async {
        let list = Arc::new(RwLock::new(Vec::new()));
        let seen = Arc::new(std::sync::Mutex::new([0; 10]));
        each(20, |n| {
            let (list, seen) = (list.clone(), seen.clone());
            async move {
                luck().await;
                match n % 2 {
                    0 => list.write().await.push(n),
                    _ => seen.lock().unwrap()[n as usize / 2] = list.read().await.len(),
                }
            }
        })
        .await;
        let seen = *seen.lock().unwrap();
        (list.read().await.clone(), seen)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permits_are_given_in_the_same_order() {
    repeats(20, true, |_| async {
        let (one, list) =
            (Arc::new(Semaphore::new(1)), Arc::new(std::sync::Mutex::new(Vec::new())));
        each(20, |n| {
            let (one, list) = (one.clone(), list.clone());
            async move {
                luck().await;
                match n % 2 {
                    0 => {
                        let _permit = one.acquire().await.unwrap();
                        list.lock().unwrap().push(n);
                    }
                    _ => {
                        let _permit = one.acquire_owned().await.unwrap();
                        list.lock().unwrap().push(n);
                    }
                }
            }
        })
        .await;
        let list = list.lock().unwrap();
        list.clone()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_semaphore_and_a_channel_without_senders_end_what_waits() {
    repeats(10, true, |_| async {
        let closes = Arc::new(Semaphore::new(3));
        let (sender, mut receiver) = unbounded_channel();
        let list = Arc::new(Mutex::new(Vec::new()));
        each(6, |n| {
            let (closes, sender, list) = (closes.clone(), sender.clone(), list.clone());
            async move {
                luck().await;
                let permit = closes.acquire().await;
                list.lock().await.push((n, permit.is_ok()));
                if let Ok(permit) = permit {
                    permit.forget();
                }
                if list.lock().await.len() == 3 {
                    closes.close();
                }
                sender.send(n).unwrap();
            }
        })
        .await;
        drop(sender);
        let mut received = Vec::new();
        while let Some(n) = receiver.recv().await {
            received.push(n);
        }
        crate::point!("after the last").await;
        let list = list.lock().await.clone();
        assert_eq!(list.iter().filter(|(_, is_ok)| *is_ok).count(), 3);
        (list, received)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_come_from_the_same_senders() {
    repeats(20, true, |_| async {
        // There is not room for all: some senders wait.
        let (sender, mut receiver) = channel(2);
        let all = each(8, move |n| {
            let sender = sender.clone();
            async move {
                for nth in 0..3 {
                    luck().await;
                    sender.send((n, nth)).await.unwrap();
                }
            }
        });
        let receive = async {
            let mut received = Vec::new();
            while let Some(message) = receiver.recv().await {
                received.push(message);
            }
            received
        };
        let ((), received) = tokio::join!(all, receive);
        assert_eq!(received.len(), 24);
        received
    })
    .await;
}

/// Here what is told is told in the poll in which it is noted, so there is one thread.
#[tokio::test]
async fn the_same_ones_are_notified() {
    repeats(20, true, |_| async {
        let (notify, list) = (Arc::new(Notify::new()), Arc::new(std::sync::Mutex::new(Vec::new())));
        let waiting = Arc::new(AtomicU32::new(0));
        let notified = each(8, |n| {
            let (notify, list, waiting) = (notify.clone(), list.clone(), waiting.clone());
            async move {
                for _ in 0..2 {
                    luck().await;
                    waiting.fetch_add(1, Ordering::Relaxed);
                    notify.notified().await;
                    list.lock().unwrap().push(n);
                }
            }
        });
        let all_wait = async |number| {
            while waiting.load(Ordering::Relaxed) < number {
                tokio::time::sleep(Duration::from_micros(100)).await;
            }
        };
        // The one who notifies does nothing that is recorded.
        let notifies = async {
            all_wait(8).await;
            (0..8).for_each(|_| notify.notify_one());
            all_wait(16).await;
            notify.notify_waiters();
        };
        tokio::join!(notified, notifies);
        let list = list.lock().unwrap();
        list.clone()
    })
    .await;
}

/// Whether something is there now: by luck. In a replay it always is.
fn is_there(process: &Process) -> bool {
    process.satellite().is_none_or(Handle::is_replay) || getrandom::u64().unwrap() >> 63 == 0
}

/// Somebody who is no control has a lock.
async fn locked(lock: &Arc<Mutex<()>>) -> JoinHandle<()> {
    let (lock, (tell, told)) = (lock.clone(), tokio::sync::oneshot::channel());
    let locked = tokio::spawn(async move {
        let _locked = lock.lock().await;
        tell.send(()).unwrap();
        std::future::pending().await
    });
    told.await.unwrap();
    locked
}

#[tokio::test]
async fn what_failed_when_it_was_tried_fails_again() {
    repeats(10, true, |process| async move {
        let mut outcomes = Vec::new();
        for _ in 0..8 {
            let lock = Arc::new(Mutex::new(()));
            let other = if is_there(&process) { None } else { Some(locked(&lock).await) };
            outcomes.push(lock.try_lock().is_ok());
            other.inspect(JoinHandle::abort);

            let permits = Semaphore::new(usize::from(is_there(&process)));
            outcomes.push(permits.try_acquire().err() != Some(TryAcquireError::NoPermits));

            let (sender, mut receiver) = channel(1);
            if is_there(&process) {
                sender.send(0).await.unwrap();
            }
            outcomes.push(receiver.try_recv() != Err(TryRecvError::Empty));

            let (sender, _receiver) = channel(1);
            if !is_there(&process) {
                sender.send(0).await.unwrap();
            }
            outcomes.push(sender.try_send(7) != Err(TrySendError::Full(7)));
        }
        outcomes
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn branches_of_select_are_told_apart() {
    repeats(10, true, |_| async {
        let (left_in, mut left) = unbounded_channel();
        let (right_in, mut right) = unbounded_channel();
        let each = each(2, move |n| {
            let sender = if n == 0 { left_in.clone() } else { right_in.clone() };
            async move {
                for nth in 0..10 {
                    luck().await;
                    sender.send(nth).unwrap();
                }
            }
        });
        let receive = async {
            let mut received = Vec::new();
            while received.iter().filter(|(from, _)| "lr".contains(*from)).count() < 20 {
                // All but one of them are given up.
                tokio::select! {
                    Some(nth) = left.recv() => received.push(('l', nth)),
                    Some(nth) = right.recv() => received.push(('r', nth)),
                    () = crate::time::sleep(Duration::from_micros(300)) => received.push(('s', 0)),
                    () = crate::time::sleep(Duration::from_micros(301)) => received.push(('t', 0)),
                }
            }
            received
        };
        tokio::join!(each, receive).1
    })
    .await;
}

/// A poll without anybody to wake.
fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn what_is_given_up_loses_nothing() {
    repeats(5, false, |_| async {
        let lock = Mutex::new(1);
        let first = lock.lock().await;
        {
            let second = pin!(lock.lock());
            assert!(poll(second).is_pending());
        }
        drop(first);
        assert_eq!(*lock.lock().await, 1);

        let (sender, mut receiver) = channel(4);
        {
            let waits = pin!(receiver.recv());
            assert!(poll(waits).is_pending());
        }
        // Both send before anything is received: in a replay the first one that is asked
        // for may be the second one in the channel.
        let both = each(2, move |n| {
            let sender = sender.clone();
            async move {
                luck().await;
                sender.send(n).await.unwrap();
            }
        });
        both.await;
        {
            let never_polled = receiver.recv();
            drop(never_polled);
        }
        let mut received = vec![receiver.recv().await.unwrap()];
        received.push(receiver.recv().await.unwrap());
        assert_eq!(receiver.recv().await, None);
        received.sort();
        received
    })
    .await;
}

/// A service of this process, and a client of it there. (Only of a service that is known
/// is it known that it can be spawned.)
macro_rules! served {
    ($process:expr, $service:expr) => {{
        let (client_end, server_end) = tarpc::transport::channel::unbounded();
        let server = server::BaseChannel::with_defaults(server_end);
        let calls = server.execute($process.serve($service));
        let serves = tokio::spawn(calls.for_each(|call| async {
            tokio::spawn(call);
        }));
        let channel = client::new(client::Config::default(), client_end).spawn();
        ($process.client(channel), serves)
    }};
}

#[tarpc::service]
trait Desk {
    async fn sign(name: u32) -> (usize, u64);
}

#[derive(Clone, Default)]
struct Book(Arc<Mutex<Vec<u32>>>);

impl Desk for Book {
    async fn sign(self, _: context::Context, name: u32) -> (usize, u64) {
        luck().await;
        let micros = crate::rand::range(0..300);
        let mut names = self.0.lock().await;
        names.push(name);
        crate::time::sleep(Duration::from_micros(micros)).await;
        (names.len(), micros)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_one_control_side_by_side_are_told_apart() {
    repeats(20, true, |process| async move {
        let book = Book::default();
        let (client, serves) = served!(process, book.clone().serve());
        let desk = DeskClient::from(client);
        let sign = |name| desk.sign(context::current(), name);
        let signed = join_all((0..6).map(sign)).await.into_iter().map(Result::unwrap);
        let signed = signed.collect::<Vec<_>>();
        drop(desk);
        serves.await.unwrap();
        (signed, book.0.lock().await.clone())
    })
    .await;
}

/// One of two calls is answered before the other has left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_never_left_takes_no_others_place() {
    let directory = tempfile::tempdir().unwrap();
    let program = |process: Process| async move {
        let (client, serves) = served!(process, Book::default().serve());
        let desk = DeskClient::from(client);
        let sign = |name| desk.sign(context::current(), name);
        // They are begun in the order of dice.
        let signed = tokio::select! {
            _ = sign(1) => 1,
            _ = sign(2) => 2,
        };
        drop(desk);
        serves.await.unwrap();
        signed
    };
    let longest = Duration::from_millis(50);
    let is_sent = |kind: &&EventKind| matches!(kind, EventKind::CallSent { .. });
    for seed in 0..1000 {
        let recorded = directory.path().join(seed.to_string());
        let perturbation = Some(Perturbation { seed, longest });
        let signed = run(&Wanted { perturbation, ..recording(&recorded) }, program).await;
        if events(&recorded).iter().filter(is_sent).count() == 1 {
            let wanted = Wanted { replay: Some(recorded), ..Wanted::default() };
            for _ in 0..20 {
                assert_eq!(run(&wanted, program).await, signed);
            }
            return;
        }
    }
    panic!("both have left each time");
}

#[tarpc::service]
trait Door {
    async fn keep();
}

/// It is kept locked until the call is given up. When the lock is free again, somebody else
/// has it before the rest of the handler is dropped.
#[derive(Clone)]
struct Room {
    lock: Arc<Mutex<()>>,
    is_locked: Arc<AtomicBool>,
    told: Arc<std::sync::Mutex<Option<mpsc::Receiver<()>>>>,
}

/// Waits when it is dropped, if there is something to wait for.
struct Rest(Option<mpsc::Receiver<()>>);

impl Drop for Rest {
    fn drop(&mut self) {
        if let Some(told) = &self.0 {
            told.recv().unwrap();
        }
    }
}

impl Door for Room {
    async fn keep(self, _: context::Context) {
        let _rest = Rest(self.told.lock().unwrap().take());
        let _locked = self.lock.lock().await;
        self.is_locked.store(true, Ordering::Release);
        std::future::pending().await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_handler_has_locked_is_free_after_its_call_is_given_up() {
    repeats(3, false, |process| async move {
        let (tell, told) = mpsc::channel();
        let is_replay = process.satellite().is_none_or(Handle::is_replay);
        // There the next one gets it when all of the handler is gone.
        let told = Arc::new(std::sync::Mutex::new((!is_replay).then_some(told)));
        let (lock, is_locked) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(false)));
        let room = Room { lock: lock.clone(), is_locked: is_locked.clone(), told };
        let (client, serves) = served!(process, room.serve());
        let door = DoorClient::from(client);
        let mut call = Box::pin(door.keep(context::current()));
        tokio::select! {
            _ = &mut call => panic!("it has no end"),
            () = becomes_true(&is_locked) => {}
        }
        let has_asked = Arc::new(AtomicBool::new(false));
        let asked = has_asked.clone();
        let next = crate::spawn("next", async move {
            let mut gets = pin!(lock.lock());
            // Whoever wakes it would not come to run it.
            while poll(gets.as_mut()).is_pending() {
                asked.store(true, Ordering::Release);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            // In a replay nobody listens.
            let _ = tell.send(());
        });
        becomes_true(&has_asked).await;
        drop(call);
        next.await.unwrap();
        drop(door);
        serves.await.unwrap();
    })
    .await;
}

async fn becomes_true(what: &AtomicBool) {
    while !what.load(Ordering::Acquire) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn entries_are_shaken_and_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let recorded = directory.path().join("recorded");
    // Without a delay they come in the order in which they are asked for.
    let program = |_| async {
        let list = Mutex::new(Vec::new());
        join_all((0..20).map(async |n| list.lock().await.push(n))).await;
        list.into_inner()
    };
    let perturbation = Some(Perturbation { seed: 7, longest: Duration::from_millis(5) });
    let shaken = run(&Wanted { perturbation, ..recording(&recorded) }, program).await;
    assert!(!shaken.is_sorted());
    let wanted = Wanted { replay: Some(recorded), ..Wanted::default() };
    assert_eq!(run(&wanted, program).await, shaken);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_session_all_is_tokios() {
    let list = Arc::new(Mutex::new(Vec::new()));
    let (notify, permits) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let (sender, mut receiver) = channel(1);
    let all = each(8, |n| {
        let (list, notify, permits) = (list.clone(), notify.clone(), permits.clone());
        let sender = sender.clone();
        async move {
            permits.acquire().await.unwrap().forget();
            list.lock().await.push(n);
            sender.send(n).await.unwrap();
            notify.notify_one();
        }
    });
    let (_, received) = tokio::join!(all, async {
        let mut received = Vec::new();
        while received.len() < 8 {
            permits.add_permits(1);
            received.push(receiver.recv().await.unwrap());
            notify.notified().await;
        }
        received
    });
    assert_eq!(received.len(), list.lock().await.len());
    permits.close();
    assert!(permits.acquire().await.is_err());
    let process = Process::without_session("p");
    assert_eq!(process.choice("x", || 1) + crate::choice("x", || 1), 2);
    drop(sender);
    receiver.close();
    assert_eq!(
        (receiver.recv().await, receiver.try_recv()),
        (None, Err(TryRecvError::Disconnected))
    );
}
