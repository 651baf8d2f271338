//! A test that is recorded, and one that does the same again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ddbx_central::logic::replay::{Judge, Verdict};
use ddbx_protocol::control::{Reply, Request};
use ddbx_recording::{Recording, is_replayable, seal};
use ddbx_satellite::recorder;

use super::{Session, session};
use crate::course::Wanted;

/// How often a replay is looked at.
const LOOKS: Duration = Duration::from_millis(20);

/// How long nothing may happen.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a test in a session, and records all that happens into a new directory. The
/// recording is also kept if the test panics: [`replay`] then does the same again, so a
/// rare failure becomes a test.
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let temporary = tempfile::tempdir().unwrap();
/// # let directory = temporary.path().join("recording");
/// async fn test(session: &ddbx::test::Session) -> u32 {
///     let shop = session.process("shop");
///     let customer = shop.spawn("customer", async {
///         ddbx::time::sleep(Duration::from_millis(20)).await;
///         7
///     });
///     customer.await.unwrap()
/// }
///
/// assert_eq!(ddbx::test::record(&directory, test).await, 7);
/// assert_eq!(ddbx::test::replay(&directory, test).await, 7);
/// # }
/// ```
///
/// # Panics
/// If the test does, or if there is something in the directory.
pub async fn record<T>(directory: impl AsRef<Path>, test: impl AsyncFnOnce(&Session) -> T) -> T {
    let directory = directory.as_ref().to_owned();
    let is_new = std::fs::read_dir(&directory).map_or(true, |mut entries| entries.next().is_none());
    assert!(is_new, "{} is not empty: record into a new directory", directory.display());
    let course = Wanted { record: Some(directory.clone()), is_exact: true, ..Wanted::default() };
    let session = session_with(course).await;
    // In whatever way the test ends.
    let _sealed = Sealed(directory);
    test(&session).await
}

async fn session_with(course: Wanted) -> Session {
    let mut session = session().await;
    session.course = course;
    session
}

struct Sealed(PathBuf);

impl Drop for Sealed {
    fn drop(&mut self) {
        recorder::finish(&self.0);
        if let Err(error) = seal(&self.0, BTreeMap::new()) {
            eprintln!("ddbx: {error}");
        }
    }
}

/// Runs a test again as it was recorded: every event happens in the order in which it
/// did, timeouts and what was chosen included. Breakpoints do not disturb it.
///
/// # Panics
/// If the test does, if the recording cannot be used, and if the test does something else
/// than it did: the message says where.
pub async fn replay<T>(recording: impl AsRef<Path>, test: impl AsyncFnOnce(&Session) -> T) -> T {
    let directory = recording.as_ref();
    let recording = Recording::open(directory).unwrap_or_else(|error| panic!("{error}"));
    if let Err(error) = is_replayable(&recording) {
        panic!("{}: {error}", directory.display());
    }
    let judge = Judge::new(recording.runs(), PATIENCE);
    let course = Wanted { replay: Some(directory.to_owned()), ..Wanted::default() };
    let session = session_with(course).await;
    let fails = |verdict: &Verdict| !matches!(verdict, Verdict::GoesOn | Verdict::Over);
    let output = tokio::select! {
        output = test(&session) => output,
        verdict = until(&session, &judge, fails) => panic!("{verdict}"),
    };
    // What the test does not wait for may still be on its way.
    match until(&session, &judge, |verdict| *verdict != Verdict::GoesOn).await {
        Verdict::Over => output,
        failed => panic!("{failed}"),
    }
}

async fn until(session: &Session, judge: &Judge, is_wanted: impl Fn(&Verdict) -> bool) -> Verdict {
    let mut last_hold = Instant::now();
    loop {
        if session.held() > 0 {
            last_hold = Instant::now();
        }
        if let Some(Reply::Replay(views)) = session.central.request(Request::Replay) {
            let verdict = judge.look(&views, last_hold.elapsed());
            if is_wanted(&verdict) {
                return verdict;
            }
        }
        tokio::time::sleep(LOOKS).await;
    }
}
