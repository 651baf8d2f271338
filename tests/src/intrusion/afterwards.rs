//! Those who have come in, and then do what they must not. Their connection is closed, or
//! they do not get what they want; nobody else notices.

use std::io;
use std::time::Instant;

use ddbx_protocol::link::{Role, VERSION, dial};
use ddbx_protocol::{FromCentral, FromSatellite, ProcessIndex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::kinds::Kind;
use super::raw::{OPENING_BYTES, Outcome, Raw, garbage, hello};
use super::target::{PROCESS, Target};
use crate::puppet::Puppet;
use crate::waiting::LIMIT;

pub(super) async fn make(
    target: &Target,
    kind: Kind,
    mut random: fastrand::Rng,
) -> io::Result<Outcome> {
    let since = Instant::now();
    match kind {
        Kind::Name => {
            let guest = guest(target, PROCESS, ProcessIndex(random.u64(..))).await?;
            let note = format!("it is called {}", guest.name);
            Ok(Outcome::refused_if(guest.name.starts_with(&format!("{PROCESS}#")), note, since))
        }
        Kind::Number => number(target, ProcessIndex(random.u64(..)), since).await,
        Kind::NotIntroduced => {
            let connection = dial(&target.address, &target.keys, Role::Satellite).await;
            let (mut sender, mut receiver) = connection.map_err(io::Error::other)?.split();
            let answer = FromSatellite::Settled { query: random.u64(..) };
            sender.send(&answer).await.map_err(io::Error::other)?;
            let heard = timeout(LIMIT, receiver.receive::<FromCentral>()).await?;
            let note = format!("it heard {heard:?}");
            Ok(Outcome::refused_if(!matches!(heard, Ok(Some(_))), note, since))
        }
        // More than a satellite may say, and some of it.
        Kind::OversizedFrame => {
            let length = random.u32((1 << 20) + 1..);
            let bytes = [&length.to_be_bytes()[..], &garbage(9_999, &mut random)].concat();
            Ok(closed(come_in(target, &bytes, &mut random).await?, since).await)
        }
        _ => {
            let mut body = attach_body(&mut random)?;
            // As it is, it is right.
            let mut raw = come_in(target, &framed(&body), &mut random).await?;
            timeout(LIMIT, raw.read_exact(&mut [0; 4])).await??;
            body.push(random.u8(..));
            Ok(closed(come_in(target, &framed(&body), &mut random).await?, since).await)
        }
    }
}

/// Comes in as a satellite, and says this.
async fn come_in(target: &Target, bytes: &[u8], random: &mut fastrand::Rng) -> io::Result<Raw> {
    let mut raw = target.connect().await?;
    raw.write_all(&hello(VERSION, 1, random)).await?;
    raw.read_exact(&mut [0; OPENING_BYTES]).await?;
    // It may be closed before it has all.
    let _ = raw.write_all(bytes).await;
    Ok(raw)
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}

/// How `Attach` looks on the wire: numbers below 251 are a byte each, others follow a byte
/// that says how long they are.
fn attach_body(random: &mut fastrand::Rng) -> io::Result<Vec<u8>> {
    let name = format!("guest-{}", random.u32(..));
    let length = u8::try_from(name.len()).map_err(io::Error::other)?;
    Ok([&[0, random.u8(..250), length][..], name.as_bytes(), &[0, 7, 7]].concat())
}

/// Whether central ends it; what it says until then is for whoever has come in.
async fn closed(mut raw: Raw, since: Instant) -> Outcome {
    let mut heard = Vec::new();
    let ended = timeout(LIMIT, raw.read_to_end(&mut heard)).await.is_ok();
    let refused = ended && heard.is_empty();
    Outcome::refused_if(refused, format!("closed: {ended}, heard {} bytes", heard.len()), since)
}

/// One takes part, and another says that it is the same one.
async fn number(target: &Target, index: ProcessIndex, since: Instant) -> io::Result<Outcome> {
    let mut first = guest(target, "guest", index).await?;
    let stolen = guest(target, "guest", index).await.ok().map(|other| other.name);
    // The first one is still spoken to.
    let lives = loop {
        match first.hear().await {
            Ok(FromCentral::Heartbeat) => break true,
            Ok(_) => {}
            Err(_) => break false,
        }
    };
    let note = format!("{} lives: {lives}; the other is called {stolen:?}", first.name);
    Ok(Outcome::refused_if(stolen.is_none() && lives, note, since))
}

async fn guest(target: &Target, name: &str, index: ProcessIndex) -> io::Result<Puppet> {
    Puppet::attach(&target.address, &target.keys, name, index).await
}
