//! A satellite that says what a test wants: what no real one would.

use std::io;

use ddbx_protocol::link::{Address, Keys, Receiver, Role, Sender, dial};
use ddbx_protocol::session::HEARTBEAT;
use ddbx_protocol::{
    Attach, FromCentral, FromSatellite, InFlight, ProcessIndex, ProcessKey, ProcessName, Status,
};
use tokio::time::{interval, timeout};

use crate::waiting::LIMIT;

/// A process that takes part, and is none.
pub struct Puppet {
    sender: Sender,
    receiver: Receiver,
    /// What central calls it.
    pub name: String,
}

impl Puppet {
    /// Takes part in a session, under this name and number.
    ///
    /// # Errors
    ///
    /// If it is not welcome.
    pub async fn attach(
        address: &Address,
        keys: &Keys,
        name: &str,
        process: ProcessIndex,
    ) -> io::Result<Self> {
        let connection = dial(address, keys, Role::Satellite).await;
        let (mut sender, mut receiver) = connection.map_err(io::Error::other)?.split();
        let name = ProcessName::new(name).map_err(io::Error::other)?;
        let (pid, key) = (std::process::id(), ProcessKey::random()?);
        let attach = Attach { process, name, own_name: None, pid, key };
        sender.send(&FromSatellite::Attach(attach)).await.map_err(io::Error::other)?;
        match timeout(LIMIT, receiver.receive::<FromCentral>()).await? {
            Ok(Some(FromCentral::Welcome { name, .. })) => {
                Ok(Self { sender, receiver, name: name.to_string() })
            }
            other => Err(io::Error::other(format!("not welcome: {other:?}"))),
        }
    }

    /// Says something.
    ///
    /// # Errors
    ///
    /// If nobody hears it.
    pub async fn say(&mut self, message: FromSatellite) -> io::Result<()> {
        self.sender.send(&message).await.map_err(io::Error::other)
    }

    /// What central says next.
    ///
    /// # Errors
    ///
    /// If it says nothing more.
    pub async fn hear(&mut self) -> io::Result<FromCentral> {
        let heard = timeout(LIMIT, self.receiver.receive::<FromCentral>()).await?;
        heard.map_err(io::Error::other)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Takes part until it is shown out: says how it is doing, and answers what is asked.
    ///
    /// # Errors
    ///
    /// Why it ended.
    pub async fn play(&mut self, status: &Status, calls: &[InFlight]) -> io::Result<()> {
        let mut heartbeat = interval(HEARTBEAT);
        loop {
            let answer = tokio::select! {
                _ = heartbeat.tick() => FromSatellite::Status(status.clone()),
                heard = self.receiver.receive::<FromCentral>() => {
                    let heard = heard.map_err(io::Error::other)?;
                    match heard.ok_or(io::ErrorKind::UnexpectedEof)? {
                        FromCentral::Calls { query, .. } => {
                            FromSatellite::Calls { query, calls: calls.to_vec() }
                        }
                        FromCentral::Settle { query }
                        | FromCentral::Finish { query }
                        | FromCentral::GoOn { query } => FromSatellite::Settled { query },
                        _ => continue,
                    }
                }
            };
            self.say(answer).await?;
        }
    }
}
