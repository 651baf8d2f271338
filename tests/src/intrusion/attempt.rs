//! One attempt.

use std::io;
use std::time::Instant;

use ddbx_protocol::control::Request;
use ddbx_protocol::link::{DialError, Keys, Refusal, Role, Secret, VERSION, dial};
use tempfile::TempDir;

use super::kinds::{Case, Door, Kind};
use super::raw::{MayHear, Outcome, drip, garbage, hello, listen, say};
use super::target::{Target, Targets};
use super::{afterwards, commands, tls};

/// The verdicts of the handshake.
const REFUSED: u8 = 0;
const PROVE: u8 = 2;

/// What a browser asks for.
pub(super) const HTTP: [&str; 4] = [
    "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "POST /ps HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
    "OPTIONS * HTTP/1.1\r\nOrigin: https://example.org\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

const WEB_SOCKET: &str = "GET /session HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
     Connection: Upgrade\r\nOrigin: https://example.org\r\nSec-WebSocket-Version: 13\r\n\
     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Makes an attempt.
pub(super) async fn make(targets: &Targets, case: Case, random: fastrand::Rng) -> Outcome {
    let since = Instant::now();
    let target = targets.at(case.door);
    let made = match case.kind {
        Kind::NoCertificate
        | Kind::ForeignCertificate
        | Kind::ExpiredCertificate
        | Kind::HttpWithCertificate => tls::make(targets, case.kind, random).await,
        Kind::OversizedFrame
        | Kind::TrailingBytes
        | Kind::NotIntroduced
        | Kind::Name
        | Kind::Number => afterwards::make(target, case.kind, random).await,
        Kind::ListenWithoutTls
        | Kind::SymlinkedDirectory
        | Kind::OpenSecret
        | Kind::SecretOnCommandLine => commands::make(targets, case.kind, random).await,
        Kind::WrongSecret => wrong_secret(target).await,
        _ => by_hand(target, case.kind, random).await,
    };
    // One that could not be made shows nothing.
    made.unwrap_or_else(|error| Outcome::refused_if(false, format!("not made: {error}"), since))
}

/// Bytes over a connection.
async fn by_hand(target: &Target, kind: Kind, mut random: fastrand::Rng) -> io::Result<Outcome> {
    let raw = target.connect().await?;
    let random = &mut random;
    let may = if target.door == Door::Tls { MayHear::Tls } else { MayHear::Nothing };
    let role = random.u8(1..=2);
    let (bytes, may) = match kind {
        Kind::Http => (HTTP[random.usize(..HTTP.len())].into(), may),
        Kind::WebSocket => (WEB_SOCKET.into(), may),
        Kind::Garbage => {
            let length = random.usize(4..2_000);
            let mut bytes = garbage(length, random);
            // Not by chance what is right.
            bytes[0] = random.u8(128..);
            (bytes, may)
        }
        Kind::Plain => (hello(VERSION, role, random), may),
        Kind::Version => {
            let version = loop {
                match random.u16(..) {
                    VERSION => {}
                    other => break other,
                }
            };
            (hello(version, role, random), MayHear::Opening(REFUSED))
        }
        Kind::Role => (hello(VERSION, random.u8(3..), random), MayHear::Nothing),
        Kind::NoProof => {
            let mut bytes = hello(VERSION, 2, random);
            bytes.extend(request());
            // As long as a proof at least: nobody waits for the rest of one.
            bytes.extend([0; 32]);
            (bytes, MayHear::Opening(PROVE))
        }
        Kind::WrongProof => {
            let mut bytes = hello(VERSION, role, random);
            bytes.extend(garbage(32, random));
            bytes.extend(request());
            (bytes, MayHear::Opening(PROVE))
        }
        Kind::Flood => {
            let mut bytes = hello(VERSION, role, random);
            bytes.extend(garbage(random.usize(32..300_000), random));
            (bytes, MayHear::Opening(PROVE))
        }
        Kind::Replay if target.door == Door::Tls => (target.overheard.clone(), MayHear::Tls),
        Kind::Replay => (target.overheard.clone(), MayHear::Opening(PROVE)),
        Kind::Silent => return Ok(listen(raw, may, Instant::now()).await),
        // What is right so far, so that there is no other reason to close.
        Kind::Slow if target.door == Door::Tls => {
            return Ok(drip(raw, &target.overheard, may).await);
        }
        Kind::Slow => return Ok(drip(raw, &hello(VERSION, role, random), may).await),
        other => return Err(io::Error::other(format!("{other:?} is not made by hand"))),
    };
    Ok(say(raw, &bytes, may).await)
}

/// What a controller asks when it has come in.
fn request() -> Vec<u8> {
    let body = serde_json::to_vec(&Request::Processes).unwrap_or_default();
    [&(body.len() as u32).to_be_bytes()[..], &body].concat()
}

/// The real client, with certificates if need be, but with a secret that it made up.
async fn wrong_secret(target: &Target) -> io::Result<Outcome> {
    let since = Instant::now();
    let directory = TempDir::new()?;
    let secret = Secret::create(&directory.path().join("secret")).map_err(io::Error::other)?;
    let keys = Keys { secret: Some(secret), tls: target.keys.tls.clone() };
    Ok(match dial(&target.address, keys, Role::Controller).await {
        Err(DialError::NotAllowed(Refusal::WrongSecret)) => Outcome::refused_if(true, "", since),
        Err(error) => Outcome::refused_if(false, error.to_string(), since),
        Ok(_) => Outcome::refused_if(false, "it was let in", since),
    })
}
