//! Programs in which luck decides are recorded once and replayed many times.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ddbx_central::driver::Session;
use ddbx_protocol::EventKind;
use ddbx_recording::{Entry as Recorded, Recording};
use ddbx_satellite::driver::Handle;
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

/// Nothing here takes this long, unless it never ends.
const FOR_EVER: Duration = Duration::from_secs(60);

/// Nobody decides about this but luck, in every run anew.
async fn luck() {
    let micros = getrandom::u64().unwrap() % 3_000;
    tokio::time::sleep(Duration::from_micros(micros)).await;
}

/// Starts a control for each number, and waits for all of them.
async fn each<F: Future<Output = ()> + Send + 'static>(number: u32, run: impl Fn(u32) -> F) {
    let tasks = (0..number).map(|n| crate::spawn(&format!("task-{n}"), run(n)));
    join_all(tasks).await.into_iter().for_each(|ended| ended.unwrap());
}

fn recording(to: &Path) -> Wanted {
    Wanted { record: Some(to.to_owned()), ..Wanted::default() }
}

/// Runs a program once in a process.
async fn run<T, F>(wanted: &Wanted, program: impl FnOnce(Process) -> F) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let session = Session::start().unwrap();
    let process = Process::embedded("p", &session, wanted).unwrap();
    let ended = process.spawn("main", program(process.clone()));
    let output = tokio::time::timeout(FOR_EVER, ended).await.expect("it ends").unwrap();
    crate::flush().await.unwrap();
    output
}

/// What happened, in its order.
fn events(directory: &Path) -> Vec<EventKind> {
    let recording = Recording::open(directory).unwrap();
    let mut reader = recording.logs()[0].read().unwrap();
    let mut events = Vec::new();
    while let Some(recorded) = reader.read().unwrap() {
        if let Recorded::Event(moment) = recorded.entry
            && !moment.kind.is_of_connection()
        {
            events.push((moment.number, moment.kind));
        }
    }
    events.sort_by_key(|(number, _)| *number);
    events.into_iter().map(|(_, kind)| kind.without_departure()).collect()
}

/// Records a program and replays it: it says the same each time, by the same events. If
/// luck decides about it, it says something else when it is recorded again.
async fn repeats<T, F>(replays: u32, depends_on_luck: bool, program: impl Fn(Process) -> F)
where
    T: PartialEq + std::fmt::Debug + Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let directory = tempfile::tempdir().unwrap();
    let to = |name: String| directory.path().join(name);
    let first = to("first".to_owned());
    let recorded = run(&recording(&first), &program).await;
    let expected = events(&first);
    for nth in 0..replays {
        let again = to(format!("replay-{nth}"));
        let wanted = Wanted { replay: Some(first.clone()), ..recording(&again) };
        assert_eq!(run(&wanted, &program).await, recorded, "replay {nth}");
        assert_eq!(events(&again), expected, "replay {nth}");
    }
    let mut differs = !depends_on_luck;
    for nth in 0..10 {
        differs =
            differs || run(&recording(&to(format!("other-{nth}"))), &program).await != recorded;
    }
    assert!(differs, "luck does not decide, so nothing was shown");
}

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
        let notified = each(8, |n| {
            let (notify, list) = (notify.clone(), list.clone());
            async move {
                luck().await;
                notify.notified().await;
                list.lock().unwrap().push(n);
            }
        });
        let notifies = async {
            for nth in 0.. {
                luck().await;
                if list.lock().unwrap().len() == 8 {
                    break;
                }
                if nth % 3 == 2 { notify.notify_waiters() } else { notify.notify_one() }
            }
        };
        // The notifier is not known to anybody.
        tokio::join!(notified, notifies);
        let list = list.lock().unwrap();
        list.clone()
    })
    .await;
}

/// Whether something is there now: by luck. In a replay it always is.
fn is_there(process: &Process) -> bool {
    process.satellite().is_none_or(Handle::is_replay) || getrandom::u64().unwrap() % 2 == 0
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

#[tarpc::service]
trait Desk {
    async fn sign(name: u32) -> usize;
}

#[derive(Clone, Default)]
struct Book(Arc<Mutex<Vec<u32>>>);

impl Desk for Book {
    async fn sign(self, _: context::Context, name: u32) -> usize {
        luck().await;
        let mut names = self.0.lock().await;
        names.push(name);
        assert_ne!(crate::rand::range(1..7), 7);
        crate::time::sleep(Duration::from_micros(crate::rand::range(0..300))).await;
        names.len()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_one_control_side_by_side_are_told_apart() {
    repeats(20, true, |process| async move {
        let (client_end, server_end) = tarpc::transport::channel::unbounded();
        let (book, server) = (Book::default(), server::BaseChannel::with_defaults(server_end));
        let calls = server.execute(process.serve(book.clone().serve()));
        let serves = tokio::spawn(calls.for_each(|call| async {
            tokio::spawn(call);
        }));
        let channel = client::new(client::Config::default(), client_end).spawn();
        let desk = DeskClient::from(process.client(channel));
        let sign = |name| desk.sign(context::current(), name);
        let nths = join_all((0..6).map(sign)).await.into_iter().map(Result::unwrap);
        let nths = nths.collect::<Vec<_>>();
        drop(desk);
        serves.await.unwrap();
        (nths, book.0.lock().await.clone())
    })
    .await;
}

#[tokio::test]
async fn choices_are_made_once() {
    repeats(5, true, |process| async move {
        let plain = |process: &Process| process.choice("outside", crate::rand::u64);
        let outside = tokio::spawn({
            let process = process.clone();
            async move { plain(&process) }
        });
        let dice_in_a_choice = plain(&process);
        let mut bytes = [0; 100];
        crate::rand::fill(&mut bytes);
        let (number, dice) = (crate::rand::u64(), crate::rand::range(10..20));
        let (float, coin) = (crate::rand::f64(), crate::rand::bool());
        assert!((10..20).contains(&dice) && (0.0..1.0).contains(&float));
        let began = crate::time::Instant::now();
        tokio::time::sleep(Duration::from_millis(1)).await;
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(1));
        let own = |name| crate::choice(name, || getrandom::u64().unwrap().to_string());
        let named = [own("a"), own("a"), own("not a name/:"), dice_in_a_choice.to_string()];
        let outside = outside.await.unwrap();
        (
            bytes.to_vec(),
            number,
            dice,
            float.to_bits(),
            coin,
            crate::time::now(),
            took,
            named,
            outside,
        )
    })
    .await;
}

#[tokio::test]
async fn a_clock_that_was_recorded_goes_on_from_there() {
    let directory = tempfile::tempdir().unwrap();
    let recorded = directory.path().join("recorded");
    let hour = Duration::from_secs(3600);
    let later = |_| async move {
        let control = crate::control::current().unwrap();
        let ahead = &control.process().controls().recorded_ahead;
        ahead.store(i64::try_from(hour.as_nanos()).unwrap(), std::sync::atomic::Ordering::Relaxed);
        crate::time::Instant::now();
    };
    run(&recording(&recorded), later).await;
    let wanted = Wanted { replay: Some(recorded), ..Wanted::default() };
    let shown = run(&wanted, |_| async { [(); 2].map(|()| crate::time::Instant::now()) }).await;
    assert!(shown[1] >= shown[0] && shown[1] - shown[0] < hour);
}

#[tokio::test]
async fn a_choice_that_cannot_be_kept_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let recorded = directory.path().join("recorded");
    let program = |long: usize, short: &'static str| {
        move |_| async move {
            let long = crate::choice("sometimes-long", || "x".repeat(long));
            (long.len(), crate::choice("sometimes-long", || short.to_owned()))
        }
    };
    assert_eq!(run(&recording(&recorded), program(5_000, "a")).await, (5_000, "a".to_owned()));
    let wanted = Wanted { replay: Some(recorded), ..Wanted::default() };
    assert_eq!(run(&wanted, program(6_000, "b")).await, (6_000, "a".to_owned()));
    // Another program reads something else from the recording.
    let read = |_| async { [(); 2].map(|()| crate::choice("sometimes-long", || 7u64)) };
    assert_eq!(run(&wanted, read).await, [7, 7]);
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
