//! The application's own timers, while somebody is held.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ddbx::time;
use tokio::task::JoinHandle;

use crate::services::{Actor, LabClient, MS, connect, until, within};

const HELD: Duration = Duration::from_millis(900);

/// Calls `act`, holds it once at its point `here`, and returns what it answers.
async fn held_at_its_point(actor: Actor) -> u64 {
    let session = ddbx::test::session().await;
    let lab = connect!(LabClient, session.process("client"), session.process("lab"), actor);
    let hit = session.breakpoint("lab:point(here)");
    let call = tokio::spawn(async move { lab.act(within(20_000 * MS), 0).await });
    let held = hit.next().await;
    tokio::time::sleep(HELD).await;
    held.resume();
    call.await.unwrap().unwrap()
}

/// What the clock on the wall shows more than the control's own.
fn hidden_since(wall: Instant, own: time::Instant) -> u64 {
    let own = own.elapsed();
    wall.elapsed().saturating_sub(own).as_millis() as u64
}

#[tokio::test]
async fn a_clock_stands_while_its_control_is_held() {
    let actor = Actor::new(|_, _| async {
        let (wall, own) = (Instant::now(), time::Instant::now());
        ddbx::point!("here").await;
        hidden_since(wall, own)
    });
    assert!(held_at_its_point(actor).await >= 900);
}

#[tokio::test]
async fn a_sleep_is_as_long_as_without_a_hold() {
    let actor = Actor::new(|_, _| async {
        let (wall, own) = (Instant::now(), time::Instant::now());
        let sleeper = async { time::sleep(1_000 * MS).await };
        let other = async { ddbx::point!("here").await };
        tokio::join!(sleeper, other);
        assert!(own.elapsed() >= 1_000 * MS, "{:?}", own.elapsed());
        hidden_since(wall, own)
    });
    assert!(held_at_its_point(actor).await >= 900);
}

#[tokio::test]
async fn a_timeout_does_not_notice_a_hold() {
    let actor = Actor::new(|_, _| async {
        let inner = async { ddbx::point!("here").await };
        u64::from(time::timeout(500 * MS, inner).await.is_ok())
    });
    assert_eq!(held_at_its_point(actor).await, 1);
}

#[tokio::test]
async fn a_timeout_still_comes_when_it_must() {
    let actor = Actor::new(|_, _| async {
        ddbx::point!("here").await;
        let own = time::Instant::now();
        let too_slow = time::timeout(100 * MS, std::future::pending::<()>()).await;
        assert!(own.elapsed() >= 100 * MS, "{:?}", own.elapsed());
        u64::from(too_slow.is_err())
    });
    assert_eq!(held_at_its_point(actor).await, 1);
}

#[tokio::test]
async fn an_interval_goes_on_where_it_was() {
    let actor = Actor::new(|_, _| async {
        let (wall, own) = (Instant::now(), time::Instant::now());
        let mut beats = time::interval(300 * MS);
        let first = beats.tick().await;
        ddbx::point!("here").await;
        let second = beats.tick().await;
        assert_eq!(second.duration_since(first), 300 * MS);
        assert!(own.elapsed() >= 300 * MS, "it did not come early: {:?}", own.elapsed());
        hidden_since(wall, own)
    });
    assert!(held_at_its_point(actor).await >= 900);
}

/// Outside a control it is all tokio's.
#[tokio::test]
async fn without_a_control_time_is_real() {
    let (wall, own) = (Instant::now(), time::Instant::now());
    time::sleep(20 * MS).await;
    assert!(time::timeout(20 * MS, std::future::pending::<()>()).await.is_err());
    let mut beats = time::interval(20 * MS);
    beats.tick().await;
    beats.tick().await;
    let own = own.elapsed();
    assert!(own >= 60 * MS && wall.elapsed() >= own, "{own:?}");
}

/// Gives a lease of virtual time to whoever calls with 1; tells others how many
/// leases have run out.
fn registry(length: Duration) -> (Actor, Arc<AtomicU64>) {
    let lost = Arc::new(AtomicU64::new(0));
    let counted = lost.clone();
    let lease: Arc<Mutex<Option<JoinHandle<()>>>> = Arc::default();
    let actor = Actor::new(move |_, number| {
        let (lost, lease) = (counted.clone(), lease.clone());
        async move {
            let expiry = ddbx::spawn("lease", async move {
                time::sleep(length).await;
                lost.fetch_add(1, Ordering::SeqCst);
            });
            if let Some(previous) = lease.lock().unwrap().replace(expiry) {
                previous.abort();
            }
            number
        }
    });
    (actor, lost)
}

#[tokio::test]
async fn a_lease_in_another_process_waits() {
    let session = ddbx::test::session().await;
    let (inventory, keeper) = (session.process("inventory"), session.process("registry"));
    let (actor, lost) = registry(1_500 * MS);
    let registry = connect!(LabClient, inventory.clone(), keeper, actor);
    let beats = Arc::new(AtomicU64::new(0));
    let counted = beats.clone();
    let renewing = inventory.spawn("renewing", async move {
        loop {
            registry.act(within(20_000 * MS), 1).await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            ddbx::point!("beat").await;
            time::sleep(100 * MS).await;
        }
    });
    until(|| beats.load(Ordering::SeqCst) > 1).await;
    for spec in ["inventory:point(beat)", "inventory:Lab.act@call", "registry:Lab.act@arrive"] {
        let hit = session.breakpoint(spec);
        let held = hit.next().await;
        tokio::time::sleep(2_200 * MS).await;
        assert_eq!(lost.load(Ordering::SeqCst), 0, "held at {spec}");
        drop(hit);
        held.resume();
        let so_far = beats.load(Ordering::SeqCst);
        until(|| beats.load(Ordering::SeqCst) > so_far + 1).await;
    }
    assert_eq!(lost.load(Ordering::SeqCst), 0);
    renewing.abort();
    until(|| lost.load(Ordering::SeqCst) == 1).await;
}
