use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::course::Wanted;
use crate::process::Process;
use crate::replaying::{recording, repeats, run};

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
        ahead.store(i64::try_from(hour.as_nanos()).unwrap(), Ordering::Relaxed);
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
