//! The connection of a satellite: what it says goes to the session, and what the session has
//! for it goes out. Whoever is silent for too long has left.

use std::sync::{Arc, Mutex, PoisonError};

use ddbx_protocol::link::{Connection, FrameError, Receiver};
use ddbx_protocol::session::LEASE;
use ddbx_protocol::{FromCentral, FromSatellite};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use super::pulse::{Line, Pulse};
use crate::driver::{Backlog, Deliver, Membership, Session};

/// How many messages wait for one satellite. Whoever is let go gets one, and there can be
/// thousands of them.
const OUTGOING_MAX: usize = 256 * 1024;

/// Until the satellite is gone, or has joined again over another connection.
pub(super) async fn serve(connection: Connection, session: Session, pulse: Pulse) {
    let (mut sender, mut receiver) = connection.split();
    let first = timeout(LEASE, receiver.receive::<FromSatellite>()).await;
    let Ok(Ok(Some(FromSatellite::Attach(attach)))) = first else { return };
    let (messages, mut outgoing) = mpsc::channel(OUTGOING_MAX);
    let deliver = or_cut_off(messages, session.backlog().clone());
    let Some(membership) = session.join(attach, deliver) else { return };
    let _leaves = Leaves { session: session.clone(), membership };
    // Its welcome comes before any heartbeat.
    let welcome = async {
        while let Ok(message) = outgoing.try_recv() {
            sender.feed(&message).await?;
        }
        sender.flush().await
    };
    if !within_lease(welcome).await {
        return;
    }
    let line = pulse.reach(sender);
    // Apart: when a thousand say that nothing has happened, nobody looks whether there is
    // something for them. It ends with this.
    let mut listening = JoinSet::new();
    listening.spawn(listen(receiver, session, membership, line.clone()));
    // Most never need it: it is set when somebody has been silent for a while.
    let mut lease = std::pin::pin!(sleep_until(line.heard() + LEASE));
    let mut is_watched = false;
    loop {
        tokio::select! {
            // None: the same process has joined again over another connection, or it has
            // taken too little.
            message = outgoing.recv() => {
                let Some(message) = message else { return };
                if !within_lease(line.send(&message)).await {
                    return;
                }
            }
            () = line.worries() => {
                if !within_lease(line.flush()).await {
                    return;
                }
                lease.as_mut().reset(line.heard() + LEASE);
                is_watched = true;
            }
            () = &mut lease, if is_watched => {
                if line.heard().elapsed() >= LEASE {
                    return;
                }
                is_watched = false;
            }
            _ = listening.join_next() => return,
        }
    }
}

/// Until the satellite is gone.
async fn listen(mut receiver: Receiver, session: Session, membership: Membership, line: Arc<Line>) {
    let mut news = News::default();
    while let Ok(Some(said)) = receiver.receive_unread().await {
        if !news.is_known(&said) {
            let Ok(message) = receiver.read(&said) else { return };
            news.heard(&said, &message);
            session.hear(membership, message);
            session.backlog().room().await;
        }
        // Only then: it was not silent while nobody listened.
        line.hears();
    }
}

/// A satellite that takes nothing any more is as good as gone.
async fn within_lease(sending: impl Future<Output = Result<(), FrameError>>) -> bool {
    matches!(timeout(LEASE, sending).await, Ok(Ok(())))
}

/// Hands messages on. A satellite that takes so few that there is no room for the next one
/// is as good as gone: it hears nothing more, and its connection ends.
fn or_cut_off(messages: mpsc::Sender<FromCentral>, backlog: Arc<Backlog>) -> Deliver {
    let messages = Mutex::new(Some(messages));
    Box::new(move |message| {
        let mut messages = messages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(TrySendError::Full(_))) = messages.as_ref().map(|to| to.try_send(message)) {
            *messages = None;
            backlog.cut_off();
        }
    })
}

/// However a satellite's connection ends, the session hears of it.
struct Leaves {
    session: Session,
    membership: Membership,
}

impl Drop for Leaves {
    fn drop(&mut self) {
        self.session.leave(self.membership);
    }
}

/// Knows how a process was doing, as it has said it: of very many that do nothing, nobody reads
/// that again, or wakes the session.
#[derive(Default)]
struct News {
    status: Vec<u8>,
}

impl News {
    /// Whether this is how it was doing already.
    fn is_known(&self, said: &[u8]) -> bool {
        !said.is_empty() && said == self.status
    }

    /// It has said this, which means that.
    fn heard(&mut self, said: &[u8], message: &FromSatellite) {
        if let FromSatellite::Status(_) = message {
            self.status.clear();
            self.status.extend_from_slice(said);
        }
    }
}

#[cfg(test)]
mod tests {
    use ddbx_protocol::Status;

    use super::*;

    #[test]
    fn how_a_process_is_doing_is_news_only_when_that_changes() {
        let status = |served| FromSatellite::Status(Status { served, ..Status::default() });
        let settled = FromSatellite::Settled { query: 1 };
        let mut news = News::default();
        let mut is_news = |said: &[u8], message: &FromSatellite| {
            let is_news = !news.is_known(said);
            news.heard(said, message);
            is_news
        };
        assert!(is_news(b"0 served", &status(0)), "the first time");
        assert!(!is_news(b"0 served", &status(0)));
        assert!(is_news(b"settled", &settled));
        assert!(is_news(b"settled", &settled), "an answer is not a status");
        assert!(!is_news(b"0 served", &status(0)));
        assert!(is_news(b"1 served", &status(1)));
        assert!(is_news(b"0 served", &status(0)), "as it was before is news too");
    }
}
