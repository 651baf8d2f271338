//! Those who have dialled and are not known yet. Their number is bounded: strangers who
//! come in crowds and say nothing cost central a few descriptors, and keep nobody waiting
//! for long.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

/// How many may be unknown at a time.
pub(super) const UNKNOWN_MAX: usize = 256;

/// Who has been unknown for so long makes room for others, if there is none. Whoever
/// belongs to the session takes a few milliseconds; as long as there is room, it may take
/// much longer.
const PATIENCE: Duration = Duration::from_millis(500);

/// The handshakes that are under way.
pub(super) struct Door {
    handshakes: JoinSet<()>,
    /// The oldest first; some of them are over.
    began: VecDeque<(Instant, AbortHandle)>,
    unknown_max: usize,
}

impl Door {
    pub(super) fn new() -> Self {
        Self::with_room_for(UNKNOWN_MAX)
    }

    fn with_room_for(unknown_max: usize) -> Self {
        Self { handshakes: JoinSet::new(), began: VecDeque::new(), unknown_max }
    }

    /// Somebody has dialled: there must be [`Door::room`].
    pub(super) fn let_in(&mut self, handshake: impl Future<Output = ()> + Send + 'static) {
        let handle = self.handshakes.spawn(handshake);
        self.began.push_back((Instant::now(), handle));
    }

    /// Waits until there is room for one more. May be dropped and asked again.
    pub(super) async fn room(&mut self) {
        loop {
            while self.handshakes.try_join_next().is_some() {}
            if self.began.len() >= 2 * self.unknown_max {
                self.began.retain(|(_, handshake)| !handshake.is_finished());
            }
            if self.handshakes.len() < self.unknown_max {
                return;
            }
            let Some((began, oldest)) = self.began.front() else { return };
            if oldest.is_finished() {
                self.began.pop_front();
                continue;
            }
            tokio::select! {
                _ = self.handshakes.join_next() => {}
                () = sleep_until(*began + PATIENCE) => {
                    oldest.abort();
                    self.began.pop_front();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn those_who_say_nothing_make_room_for_others() {
        let mut door = Door::with_room_for(4);
        let start = Instant::now();
        for _ in 0..12 {
            door.room().await;
            door.let_in(pending());
        }
        assert_eq!(door.handshakes.len(), 4);
        // Twice, all that were there were given up at once.
        assert!((2 * PATIENCE..3 * PATIENCE).contains(&start.elapsed()), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_quick_keeps_nobody_waiting_and_leaves_nothing() {
        let mut door = Door::with_room_for(4);
        let start = Instant::now();
        door.let_in(pending());
        for _ in 0..1_000 {
            door.room().await;
            door.let_in(async {});
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert!(door.began.len() <= 8, "{}", door.began.len());
        assert!(timeout(PATIENCE / 2, door.room()).await.is_ok());
        assert!(!door.began[0].1.is_finished(), "there was room for it all the time");
    }
}
