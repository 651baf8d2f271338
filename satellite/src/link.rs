//! The satellite's way to central: dials out, says how the process is doing, and
//! when central is lost tells the satellite and dials again.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use std::{io, thread};

use ddbx_protocol::link::{Address, Connection, DialError, FrameError, Keys, Role, Sender, dial};
use ddbx_protocol::session::{HEARTBEAT, LEASE};
use ddbx_protocol::{FromCentral, FromSatellite, Names};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use crate::driver::Inbox;

const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// How many messages are sent in one piece.
const PIECE_MAX: usize = 256;

/// Where central is.
pub struct Target {
    /// The address.
    pub address: Address,
    /// What it asks for, over TCP.
    pub keys: Keys,
}

/// How the first attempt to reach central ended.
#[derive(Debug)]
pub enum FirstAttempt {
    /// The process takes part, and all breakpoints for it are planted.
    Attached,
    /// It does not, yet: it goes on alone, and tries again.
    Alone(DialError),
}

/// Keeps the satellite attached from a thread of its own, as long as there is one.
/// Hears how the first attempt ends.
pub fn start(inbox: Inbox, target: Target) -> io::Result<Receiver<FirstAttempt>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (tell, first) = sync_channel(1);
    let thread = thread::Builder::new().name("ddbx-link".to_owned());
    thread.spawn(move || runtime.block_on(keep(inbox, target, tell)))?;
    Ok(first)
}

async fn keep(inbox: Inbox, target: Target, first: SyncSender<FirstAttempt>) {
    let mut backoff = BACKOFF_MIN;
    while inbox.is_needed() {
        match dial(&target.address, &target.keys, Role::Satellite).await {
            Ok(connection) => {
                let welcome = talk(&inbox, connection, &first).await;
                inbox.lost();
                if welcome {
                    backoff = BACKOFF_MIN;
                }
            }
            Err(error) => {
                let _ = first.try_send(FirstAttempt::Alone(error));
            }
        }
        sleep(backoff).await;
        backoff = (backoff * 2).min(BACKOFF_MAX);
    }
}

/// Until the connection or central is lost; true if central has said welcome.
async fn talk(inbox: &Inbox, connection: Connection, first: &SyncSender<FirstAttempt>) -> bool {
    let (mut sender, mut receiver) = connection.split();
    let (messages, mut outgoing) = unbounded_channel();
    let send = move |message| {
        let _ = messages.send(message);
    };
    let Some(attach) = inbox.connected(Box::new(send)) else { return false };
    if !within_lease(sender.send(&FromSatellite::Attach(attach))).await {
        return false;
    }
    let mut welcome = false;
    let mut heartbeat = Heartbeat::new(Instant::now());
    let mut heard = Instant::now();
    let mut names_told = 0;
    loop {
        let beats = tokio::select! {
            received = timeout_at(heard + LEASE, receiver.receive::<FromCentral>()) => {
                let Ok(Ok(Some(message))) = received else { return welcome };
                heard = Instant::now();
                if message == FromCentral::Heartbeat {
                    heartbeat.answers(heard)
                } else {
                    welcome |= matches!(message, FromCentral::Welcome { .. });
                    let is_ready = message == FromCentral::Ready;
                    inbox.deliver(message);
                    if is_ready {
                        let _ = first.try_send(FirstAttempt::Attached);
                    }
                    false
                }
            }
            Some(message) = outgoing.recv() => {
                inbox.is_sending(true);
                let sent = within_lease(send_some(&mut sender, message, &mut outgoing)).await;
                inbox.is_sending(!outgoing.is_empty());
                if !sent {
                    return welcome;
                }
                false
            }
            () = sleep_until(heartbeat.due()) => true,
        };
        if beats {
            let Some(status) = inbox.status() else { return welcome };
            let names = inbox.names(names_told);
            names_told = names.as_ref().map_or(names_told, Names::count);
            let told = within_lease(async {
                if let Some(names) = names {
                    sender.feed(&FromSatellite::Names(names)).await?;
                }
                sender.send(&FromSatellite::Status(status)).await
            });
            if !told.await {
                return welcome;
            }
            heartbeat.beaten(Instant::now());
        }
    }
}

/// When to say how the process is doing.
///
/// Central's heartbeat is answered: it beats for all at once, and hears all at once. If none
/// comes the satellite does so by itself, for it must not depend on another's clock whether it
/// counts as gone.
struct Heartbeat {
    due: Instant,
    last: Option<Instant>,
}

impl Heartbeat {
    fn new(now: Instant) -> Self {
        Self { due: now, last: None }
    }

    /// When to beat if central does not.
    fn due(&self) -> Instant {
        self.due
    }

    /// Whether central's heartbeat, which has just come, is answered. Not two within one beat:
    /// a central that answers every answer would never rest.
    fn answers(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.duration_since(last) >= HEARTBEAT / 2)
    }

    fn beaten(&mut self, now: Instant) {
        self.last = Some(now);
        self.due = now + HEARTBEAT + HEARTBEAT / 2;
    }
}

/// What waits to be sent goes in one piece, up to a point: when thousands stand still at once
/// there is much to tell, and neither heartbeats nor what central says must wait for all of it.
async fn send_some(
    sender: &mut Sender,
    first: FromSatellite,
    waiting: &mut UnboundedReceiver<FromSatellite>,
) -> Result<(), FrameError> {
    sender.feed(&first).await?;
    for _ in 1..PIECE_MAX {
        let Ok(message) = waiting.try_recv() else { break };
        sender.feed(&message).await?;
    }
    sender.flush().await
}

/// A central that takes nothing any more is as good as gone.
async fn within_lease(sending: impl Future<Output = Result<(), FrameError>>) -> bool {
    matches!(timeout(LEASE, sending).await, Ok(Ok(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centrals_heartbeat_is_answered_and_without_one_it_beats_by_itself() {
        let start = Instant::now();
        let mut heartbeat = Heartbeat::new(start);
        assert_eq!(heartbeat.due(), start, "at first at once");
        heartbeat.beaten(start);
        assert!(heartbeat.due() > start + HEARTBEAT, "central's comes before");
        assert!(heartbeat.due() + HEARTBEAT < start + LEASE, "one may be lost");
        assert!(heartbeat.answers(start + HEARTBEAT));
        heartbeat.beaten(start + HEARTBEAT);
        assert!(!heartbeat.answers(start + HEARTBEAT), "an answer to an answer");
        assert!(heartbeat.answers(start + 2 * HEARTBEAT));
    }
}
