//! A session on a socket: satellites join, and people's tools ask and command.

use std::sync::Arc;
use std::time::Duration;

use ddbx_protocol::BreakpointId;
use ddbx_protocol::control::{Notice, Reply, Request, What};
use ddbx_protocol::link::{Connection, Incoming, Listener, Receiver, Role, Sender};
use ddbx_protocol::session::{HEARTBEAT, LEASE};
use tokio::sync::Notify;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::timeout;

use crate::driver::Session;
use door::Door;
use pulse::Pulse;

mod calls;
mod door;
mod pulse;
mod satellite;

/// How long a process may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Serves a session at a socket until somebody asks for its end.
pub async fn serve(listener: Listener, session: Session) {
    let end = Arc::new(Notify::new());
    let mut door = Door::new();
    let pulse = Pulse::start();
    loop {
        let next = async {
            door.room().await;
            listener.accept().await
        };
        tokio::select! {
            accepted = next => match accepted {
                Ok(incoming) => {
                    let welcome = welcome(incoming, session.clone(), pulse.clone(), end.clone());
                    door.let_in(welcome);
                }
                // Out of descriptors, or the like: it may pass.
                Err(_) => tokio::time::sleep(HEARTBEAT).await,
            },
            () = end.notified() => return,
        }
    }
}

/// Whoever does not come in properly is left alone: that connection is closed, and
/// nothing else is said. Done when it is known who it is.
async fn welcome(incoming: Incoming, session: Session, pulse: Pulse, end: Arc<Notify>) {
    match incoming.handshake().await {
        Ok((Role::Satellite, connection)) => {
            tokio::spawn(satellite::serve(connection, session, pulse));
        }
        Ok((Role::Controller, connection)) => {
            tokio::spawn(async move { controller(connection, session, &end).await });
        }
        Err(_) => {}
    }
}

async fn controller(connection: Connection, session: Session, end: &Notify) {
    let (mut sender, mut receiver) = connection.split();
    while let Ok(Some(request)) = receiver.receive::<Request>().await {
        let reply = match request {
            Request::Events { follow } => {
                let _ = tell_events(&session, follow, &mut sender, &mut receiver).await;
                return;
            }
            Request::Wait { breakpoint, timeout: limit } => {
                tokio::select! {
                    hit = timeout(limit, hit(&session, breakpoint)) => {
                        hit.unwrap_or(Reply::TimedOut)
                    }
                    // Who asked has gone, or says what it must not say now.
                    _ = receiver.receive::<Request>() => return,
                }
            }
            Request::Backtrace(hold) => calls::backtrace(&session, hold).await,
            Request::Calls => calls::in_flight(&session).await,
            Request::Stop => {
                let _ = sender.send(&Reply::Done(1)).await;
                end.notify_one();
                return;
            }
            // When these are answered they are in force, unless somebody hangs.
            request @ (Request::Break(_)
            | Request::Change { .. }
            | Request::Enable { .. }
            | Request::Delete(_)
            | Request::Pause(_)) => {
                // A condition is checked in a thread of its own, and waited for.
                let asks = session.clone();
                let asked = tokio::task::spawn_blocking(move || asks.request(request));
                let reply = asked.await.ok().flatten().unwrap_or_else(ended);
                let _ = timeout(ANSWER_MAX, session.settled()).await;
                reply
            }
            request => session.request(request).unwrap_or_else(ended),
        };
        if sender.send(&reply).await.is_err() {
            return;
        }
    }
}

fn ended() -> Reply {
    Reply::Refused("the session has ended".to_owned())
}

/// Answers when somebody stands at a breakpoint.
async fn hit(session: &Session, breakpoint: BreakpointId) -> Reply {
    let Some(mut notices) = session.subscribe() else { return ended() };
    loop {
        // Asked after every notice, so that none that was missed matters.
        let wait = Request::Wait { breakpoint, timeout: LEASE };
        match session.request(wait) {
            Some(Reply::TimedOut) => {}
            Some(reply) => return reply,
            None => return ended(),
        }
        loop {
            match notices.recv().await {
                Ok(Notice { what: What::Stands(hold), .. })
                    if hold.breakpoint == Some(breakpoint) =>
                {
                    return Reply::Hit(hold);
                }
                Ok(Notice { what: What::BreakpointDeleted(id), .. }) if id == breakpoint => break,
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => break,
                Err(RecvError::Closed) => return ended(),
            }
        }
    }
}

/// What has happened, and what happens, until there is nobody to tell.
async fn tell_events(
    session: &Session,
    follow: bool,
    sender: &mut Sender,
    receiver: &mut Receiver,
) -> Result<(), ddbx_protocol::link::FrameError> {
    let _observing = follow.then(|| session.observe());
    let Some((kept, mut notices)) = session.kept() else { return Ok(()) };
    for notice in kept {
        sender.feed(&Reply::Notice(notice)).await?;
    }
    if !follow {
        return sender.send(&Reply::End).await;
    }
    sender.flush().await?;
    loop {
        tokio::select! {
            notice = notices.recv() => match notice {
                Ok(notice) => sender.feed(&Reply::Notice(notice)).await?,
                Err(RecvError::Lagged(number)) => sender.feed(&missed(session, number)).await?,
                Err(RecvError::Closed) => return Ok(()),
            },
            _ = receiver.receive::<Request>() => return Ok(()),
        }
        // All that waits goes in one piece: there can be thousands in a second.
        loop {
            match notices.try_recv() {
                Ok(notice) => sender.feed(&Reply::Notice(notice)).await?,
                Err(TryRecvError::Lagged(number)) => {
                    sender.feed(&missed(session, number)).await?;
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        sender.flush().await?;
    }
}

fn missed(session: &Session, number: u64) -> Reply {
    session.backlog().missed(number);
    Reply::Notice(Notice { at_ms: 0, what: What::Missed(number) })
}
