//! Notifications.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ddbx_protocol::Shared;

use super::Entry;

/// `tokio::sync::Notify`; in a replay controls are notified in the recorded order.
///
/// Whether somebody waited already when it was notified is luck. So in a replay no
/// notification is lost: whoever was notified goes on in its turn, as soon as enough
/// notifications have come.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let ready = ddbx::sync::Notify::new();
/// ready.notify_one();
/// ready.notified().await;
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Notify {
    own: tokio::sync::Notify,
    /// Notifications of one that no replay has used.
    unused: AtomicU64,
    /// Whether all have ever been notified: how many that were, is not known.
    to_all: AtomicBool,
    /// Tells those whose turn it is in a replay.
    replayed: tokio::sync::Notify,
}

impl Notify {
    /// One that has notified nobody.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for a notification. As with tokio it hears of `notify_waiters` from now on,
    /// and of `notify_one` when it is polled.
    pub fn notified(&self) -> impl Future<Output = ()> {
        let (entry, notified) = (Entry::next(Shared::Notice), self.own.notified());
        async move {
            let Some(entry) = entry else { return notified.await };
            let turn = entry.turn(None).await;
            let notified = pin!(notified);
            match turn.is_recorded() {
                true => {
                    self.use_one().await;
                    // Nobody else gets that one when the replay is over.
                    notified.enable();
                }
                false => notified.await,
            }
            entry.happens(turn, None);
        }
    }

    /// Notifies one that waits, or the next one that will.
    pub fn notify_one(&self) {
        self.unused.fetch_add(1, Ordering::Release);
        self.own.notify_one();
        self.replayed.notify_waiters();
    }

    /// Notifies all that wait.
    pub fn notify_waiters(&self) {
        self.to_all.store(true, Ordering::Release);
        self.own.notify_waiters();
        self.replayed.notify_waiters();
    }

    /// Waits until there is a notification that nobody has used.
    async fn use_one(&self) {
        loop {
            // It hears of all that come from now on.
            let more = self.replayed.notified();
            let less = |unused: u64| unused.checked_sub(1);
            let used = self.unused.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
            if used.is_ok() || self.to_all.load(Ordering::Acquire) {
                return;
            }
            more.await;
        }
    }
}
