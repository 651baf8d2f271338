//! A session, asked and listened to. When it is gone it is tried again until it is back.

use std::time::Duration;

use ddbx_protocol::control::{Notice, Reply, Request};
use ddbx_protocol::link::{Address, Connection, Keys, Receiver, Role, Sender, dial};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::state::Update;

/// How long to wait before it is tried again.
const RETRY: Duration = Duration::from_millis(300);

/// A session that takes longer for an answer is taken for gone.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// How many notices are handed on at once.
const NOTICES_MAX: usize = 512;

/// Where the session is.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: Address,
    pub(crate) keys: Keys,
}

impl Target {
    async fn dial(&self) -> Result<Connection, String> {
        let dialled = dial(&self.address, &self.keys, Role::Controller).await;
        dialled.map_err(|error| error.to_string())
    }
}

/// Asks what is wanted, for ever. Who wants something is told the answer.
pub(crate) async fn ask(
    target: Target,
    mut wanted: mpsc::Receiver<Request>,
    tell: mpsc::Sender<Update>,
) {
    loop {
        let why = match target.dial().await {
            Ok(connection) => {
                // What was wanted of the one that is gone is not wanted of this one.
                while wanted.try_recv().is_ok() {}
                if tell.send(Update::Up).await.is_err() {
                    return;
                }
                let (mut sender, mut receiver) = connection.split();
                match ask_until_lost(&mut sender, &mut receiver, &mut wanted, &tell).await {
                    Some(why) => why,
                    None => return,
                }
            }
            Err(why) => why,
        };
        if tell.send(Update::Lost(why)).await.is_err() {
            return;
        }
        sleep(RETRY).await;
    }
}

/// Why it was lost; none if nobody wants anything any more.
async fn ask_until_lost(
    sender: &mut Sender,
    receiver: &mut Receiver,
    wanted: &mut mpsc::Receiver<Request>,
    tell: &mpsc::Sender<Update>,
) -> Option<String> {
    loop {
        let request = tokio::select! {
            request = wanted.recv() => request?,
            // It says nothing unless asked: so this is its end.
            _ = receiver.receive::<Reply>() => return Some("it closed the connection".to_owned()),
        };
        let answer = async {
            sender.send(&request).await.map_err(|error| error.to_string())?;
            let reply = receiver.receive::<Reply>().await.map_err(|error| error.to_string())?;
            reply.ok_or_else(|| "it closed the connection".to_owned())
        };
        match timeout(ANSWER_MAX, answer).await {
            Ok(Ok(reply)) => tell.send(Update::Answer(request, Box::new(reply))).await.ok()?,
            Ok(Err(why)) => return Some(why),
            Err(_) => return Some(format!("no answer for {} s", ANSWER_MAX.as_secs())),
        }
    }
}

/// Listens to what happens, for ever. If the screen is too slow, what does not fit is counted.
pub(crate) async fn listen(target: Target, tell: mpsc::Sender<Update>) {
    while !tell.is_closed() {
        if let Ok(connection) = target.dial().await {
            let (mut sender, mut receiver) = connection.split();
            if sender.send(&Request::Events { follow: true }).await.is_ok()
                && tell.send(Update::Begins).await.is_ok()
            {
                hear(&mut receiver, &tell).await;
            }
        }
        // That it is gone is told by who asks.
        sleep(RETRY).await;
    }
}

async fn hear(receiver: &mut Receiver, tell: &mpsc::Sender<Update>) {
    let mut batch: Vec<Notice> = Vec::new();
    let mut missed = 0;
    loop {
        let next = tokio::select! {
            biased;
            reply = receiver.receive::<Reply>() => Some(reply),
            // Nothing more is there now.
            permit = tell.reserve(), if !batch.is_empty() => {
                let Ok(permit) = permit else { return };
                permit.send(Update::Notices(std::mem::take(&mut batch)));
                None
            }
        };
        match next {
            Some(Ok(Some(Reply::Notice(notice)))) => {
                if batch.len() == NOTICES_MAX {
                    match tell.try_reserve() {
                        Ok(permit) => {
                            permit.send(Update::Notices(std::mem::take(&mut batch)));
                        }
                        Err(mpsc::error::TrySendError::Closed(())) => return,
                        Err(mpsc::error::TrySendError::Full(())) => {
                            missed += batch.len() as u64;
                            batch.clear();
                        }
                    }
                }
                batch.push(notice);
            }
            Some(_) => return,
            None => {}
        }
        if missed > 0 && tell.try_send(Update::Missed(missed)).is_ok() {
            missed = 0;
        }
    }
}
