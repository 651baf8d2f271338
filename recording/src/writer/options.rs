//! What a writer is told.

use std::time::Duration;

use crate::manifest::Keep;

/// When to do what.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How much of the log is kept.
    pub keep: Keep,
    /// How long an entry may wait in the writer. With 20 ms, and a queue that is
    /// drained every 10, an event is written within 50 ms.
    pub write_after: Duration,
    /// How long what is written may wait to be synced; without it, that is done only
    /// when a segment is full or the log is closed.
    pub sync_after: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            keep: Keep::All,
            write_after: Duration::from_millis(20),
            sync_after: Some(Duration::from_secs(1)),
        }
    }
}
