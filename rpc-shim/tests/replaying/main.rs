//! A test is recorded once and does the same again as often as wanted, whatever luck
//! was at work in it.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

#[path = "../services/mod.rs"]
mod services;

mod divergence;
mod orders;
mod timeouts;

use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::time::Duration;

use ddbx::test::{Session, record, replay};
use tempfile::TempDir;

/// How often a recording is replayed.
const AGAIN: usize = 8;

/// A place for a recording.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("recording")
    }
}

/// Sleeps in real time, nobody knows for how long.
async fn luck(longest: Duration) {
    let dice = RandomState::new().hash_one(());
    let nanos = u64::try_from(longest.as_nanos()).unwrap();
    tokio::time::sleep(Duration::from_nanos(dice % nanos)).await;
}

/// Records a test until its outcome is one that differs from the last (so there is luck
/// in it), and replays both.
async fn comes_again<T: PartialEq + std::fmt::Debug>(test: impl AsyncFn(&Session) -> T) {
    let first = Place::new();
    let outcome = record(first.path(), &test).await;
    let mut other = Place::new();
    let mut other_outcome = record(other.path(), &test).await;
    for _ in 0..100 {
        if other_outcome != outcome {
            break;
        }
        other = Place::new();
        other_outcome = record(other.path(), &test).await;
    }
    assert_ne!(outcome, other_outcome, "there is no luck in this test");
    for _ in 0..AGAIN {
        assert_eq!(replay(first.path(), &test).await, outcome);
        assert_eq!(replay(other.path(), &test).await, other_outcome);
    }
}
