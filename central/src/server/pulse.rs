//! The pulse of a session: one timer for all connections. Satellites answer it, so what a
//! thousand of them say comes together too, and central wakes twice for all of them and not
//! twice for each.

use ddbx_protocol::session::HEARTBEAT;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// Beats as long as somebody feels it.
#[derive(Clone)]
pub(super) struct Pulse(watch::Receiver<()>);

impl Pulse {
    /// Needs a runtime.
    pub(super) fn start() -> Self {
        let (beats, felt) = watch::channel(());
        tokio::spawn(async move {
            let mut heartbeat = interval(HEARTBEAT);
            heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while beats.send(()).is_ok() {
                heartbeat.tick().await;
            }
        });
        Self(felt)
    }

    /// What has been until now is over: the next beat is one that comes.
    pub(super) fn feel(&mut self) {
        self.0.mark_unchanged();
    }

    /// The next beat. Cancel-safe: a beat that nobody waited for is felt later.
    pub(super) async fn beat(&mut self) {
        if self.0.changed().await.is_err() {
            // The runtime ends.
            std::future::pending().await
        }
    }
}
