//! A program that does something else is told where.

use std::path::Path;

use ddbx::test::{Session, record, replay};
use futures::FutureExt as _;
use tarpc::context;

use crate::Place;
use crate::services::{Actor, LabClient, connect};

/// Passes points, and calls.
async fn walks(session: &Session, labels: &[&'static str], calls: u64) {
    let (front, back) = (session.process("front"), session.process("back"));
    let client = connect!(LabClient, front, back, Actor::echo());
    let labels = labels.to_vec();
    let main = front.spawn("main", async move {
        for label in labels {
            ddbx::point!(label).await;
        }
        for number in 0..calls {
            client.act(context::current(), number).await.unwrap();
        }
    });
    main.await.unwrap();
}

/// What a replay of another walk says.
async fn fails(recording: &Path, labels: &[&'static str], calls: u64) -> String {
    let again = replay(recording, async |session| walks(session, labels, calls).await);
    let panic = std::panic::AssertUnwindSafe(again).catch_unwind().await.unwrap_err();
    panic.downcast_ref::<String>().cloned().unwrap()
}

#[tokio::test]
async fn another_way_is_reported_with_its_place() {
    let place = Place::new();
    let recording = place.path();
    record(&recording, async |session| walks(session, &["a", "b", "c"], 2).await).await;
    replay(&recording, async |session| walks(session, &["a", "b", "c"], 2).await).await;

    let other = fails(&recording, &["a", "x", "c"], 2).await;
    assert!(other.contains("front does not do what was recorded, at front:4"), "{other}");
    assert!(other.contains("control   front/main"), "{other}");
    assert!(other.contains("expected  point b  front/main"), "{other}");
    assert!(other.contains("actual    point x  front/main"), "{other}");
    assert!(
        other.contains("common:\n    front:2  front/main begins\n    front:3  point a"),
        "{other}"
    );

    let swapped = fails(&recording, &["b", "a", "c"], 2).await;
    assert!(swapped.contains("expected  point a  front/main"), "{swapped}");
    assert!(swapped.contains("actual    point b  front/main"), "{swapped}");

    let more = fails(&recording, &["a", "b", "c"], 3).await;
    assert!(more.contains("expected  front/main ends"), "{more}");
    assert!(more.contains("actual    calls Lab.act  front/main!3"), "{more}");

    let fewer = fails(&recording, &["a", "b", "c"], 1).await;
    assert!(fewer.contains("expected  calls Lab.act  front/main!2"), "{fewer}");
    assert!(fewer.contains("actual    front/main ends"), "{fewer}");
}

#[tokio::test]
async fn a_recording_of_something_else_is_reported() {
    let place = Place::new();
    let recording = place.path();
    record(&recording, async |session| {
        session.process("other").spawn("main", async {}).await.unwrap();
    })
    .await;
    let told = fails(&recording, &["a"], 0).await;
    assert!(told.contains("other has not come"), "{told}");
}
