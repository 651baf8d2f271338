//! The pulse of a session: one timer for all connections, and one task that beats for all.
//! Satellites answer it, so what a thousand of them say comes together too. Their own tasks
//! sleep meanwhile, unless something is wrong: to wake a thousand is most of what a
//! heartbeat would cost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use ddbx_protocol::FromCentral;
use ddbx_protocol::link::{FrameError, Sender};
use ddbx_protocol::session::HEARTBEAT;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How many beats are sent before others may do something.
const TOGETHER: usize = 32;

/// Whoever says nothing for so long is watched.
const SILENT: Duration = HEARTBEAT.saturating_mul(2);

/// Beats as long as somebody feels it.
#[derive(Clone)]
pub(super) struct Pulse(Arc<Mutex<Vec<Weak<Line>>>>);

impl Pulse {
    /// Needs a runtime.
    pub(super) fn start() -> Self {
        let new = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(beat(Arc::downgrade(&new)));
        Self(new)
    }

    /// From now on the other end of this feels it, as long as somebody has the line.
    pub(super) fn reach(&self, sender: Sender) -> Arc<Line> {
        let line = Arc::new(Line::new(sender));
        let mut new = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        new.push(Arc::downgrade(&line));
        line
    }
}

async fn beat(new: Weak<Mutex<Vec<Weak<Line>>>>) {
    let mut heartbeat = interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut lines = Vec::new();
    while let Some(new) = new.upgrade() {
        lines.append(&mut new.lock().unwrap_or_else(PoisonError::into_inner));
        drop(new);
        let mut nth = 0;
        while let Some(line) = lines.get(nth).map(Weak::upgrade) {
            let Some(line) = line else {
                lines.swap_remove(nth);
                continue;
            };
            line.beat();
            nth += 1;
            if nth.is_multiple_of(TOGETHER) {
                yield_now().await;
            }
        }
        heartbeat.tick().await;
    }
}

/// The way to a satellite: for its heartbeats, and for what the session has for it.
pub(super) struct Line {
    /// Locked as long as something is being sent.
    sender: tokio::sync::Mutex<Sender>,
    began: Instant,
    /// When the satellite last said something, in nanoseconds since then.
    heard: AtomicU64,
    worries: Notify,
}

impl Line {
    fn new(sender: Sender) -> Self {
        Self {
            sender: tokio::sync::Mutex::new(sender),
            began: Instant::now(),
            heard: AtomicU64::new(0),
            worries: Notify::new(),
        }
    }

    /// Its satellite has said something.
    pub(super) fn hears(&self) {
        self.heard.store(self.began.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    /// When its satellite last said something.
    pub(super) fn heard(&self) -> Instant {
        self.began + Duration::from_nanos(self.heard.load(Ordering::Relaxed))
    }

    /// Sends a message, and what is left of others.
    pub(super) async fn send(&self, message: &FromCentral) -> Result<(), FrameError> {
        self.sender.lock().await.send(message).await
    }

    /// Sends what is left.
    pub(super) async fn flush(&self) -> Result<(), FrameError> {
        self.sender.lock().await.flush().await
    }

    /// Until its satellite takes nothing, or has not said anything for a while.
    pub(super) async fn worries(&self) {
        self.worries.notified().await;
    }

    fn beat(&self) {
        // To whom something is being sent, that is a sign of life too.
        let mut sender = self.sender.try_lock();
        let is_sent = |sender: &mut Sender| sender.send_at_once(&FromCentral::Heartbeat);
        let all_sent = sender.as_mut().map_or(Ok(true), |sender| is_sent(sender));
        drop(sender);
        if !matches!(all_sent, Ok(true)) || self.heard().elapsed() >= SILENT {
            self.worries.notify_one();
        }
    }
}
