//! Somebody who belongs to the sessions and asks them something all the time: strangers
//! must not keep it waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinHandle;

use super::other_user::millis;
use super::target::Targets;

/// What it saw.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Watched {
    /// How often it was answered.
    pub answers: u64,
    /// How long it waited at most.
    pub slowest_ms: u64,
    /// What it was told instead of an answer.
    pub failures: Vec<String>,
}

pub(super) struct Watcher {
    ends: Arc<AtomicBool>,
    watching: JoinHandle<Watched>,
}

impl Watcher {
    pub(super) fn start(targets: &Arc<Targets>) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let (targets, end) = (targets.clone(), ends.clone());
        let watching = tokio::spawn(async move {
            let mut watched = Watched::default();
            while !end.load(Ordering::Relaxed) {
                for target in targets.all() {
                    let since = Instant::now();
                    match target.answer().await {
                        Ok(()) => watched.answers += 1,
                        Err(error) => watched.failures.push(error),
                    }
                    watched.slowest_ms = watched.slowest_ms.max(millis(since.elapsed()));
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            watched
        });
        Self { ends, watching }
    }

    pub(super) async fn end(self) -> Watched {
        self.ends.store(true, Ordering::Relaxed);
        self.watching.await.unwrap_or_else(|error| Watched {
            failures: vec![error.to_string()],
            ..Watched::default()
        })
    }
}
