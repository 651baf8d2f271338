//! What satellites have said and the session has not heard yet, and what there was no room
//! for. Satellites are read by tasks of their own and the session is one thread: so this is
//! where one that says too much, or all of them together, must not fill the memory.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ddbx_protocol::FromSatellite;
use tokio::time::sleep;

/// With so many messages waiting, events are not added to them: people can do without.
const EVENTS_BEHIND_MAX: usize = 2 * 1024;

/// With so many, nothing more is read. A satellite waits then, and goes on alone if that
/// takes longer than a lease.
const BEHIND_MAX: usize = 64 * 1024;

/// How often it is looked whether there is room again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
pub(crate) struct Backlog {
    waiting: AtomicUsize,
    /// Events that were not added.
    events: AtomicU64,
    /// What listeners were too slow for.
    missed: AtomicU64,
    /// Satellites that were cut off.
    connections: AtomicU64,
}

impl Backlog {
    /// A message comes; false if there is no room for it.
    pub(super) fn enter(&self, message: &FromSatellite) -> bool {
        if let FromSatellite::Events { events, dropped } = message
            && self.waiting.load(Ordering::Relaxed) >= EVENTS_BEHIND_MAX
        {
            let number = dropped.saturating_add(events.len() as u64);
            self.events.fetch_add(number, Ordering::Relaxed);
            return false;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// A message is heard.
    pub(super) fn leave(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Waits until there is room for more.
    pub(crate) async fn room(&self) {
        while self.waiting.load(Ordering::Relaxed) >= BEHIND_MAX {
            sleep(LOOK_AGAIN).await;
        }
    }

    /// A listener was too slow for so much.
    pub(crate) fn missed(&self, number: u64) {
        self.missed.fetch_add(number, Ordering::Relaxed);
    }

    /// A satellite takes nothing any more.
    pub(crate) fn cut_off(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Events that were not added, what listeners missed, and satellites that were cut off.
    pub(super) fn dropped(&self) -> [u64; 3] {
        [&self.events, &self.missed, &self.connections].map(|count| count.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn events_are_dropped_first_and_then_nothing_is_read() {
        let backlog = Backlog::default();
        let settled = FromSatellite::Settled { query: 1 };
        let events = FromSatellite::Events { events: Vec::new(), dropped: 3 };
        for _ in 0..EVENTS_BEHIND_MAX {
            assert!(backlog.enter(&events));
        }
        assert!(!backlog.enter(&events), "there is no room for events");
        assert_eq!(backlog.dropped(), [3, 0, 0]);
        for _ in EVENTS_BEHIND_MAX..BEHIND_MAX {
            backlog.room().await;
            assert!(backlog.enter(&settled), "what is about holds is always heard");
        }
        let waits = tokio::time::timeout(LOOK_AGAIN * 10, backlog.room()).await;
        assert!(waits.is_err(), "nothing more is read");
        backlog.leave();
        backlog.room().await;
    }
}
