//! Messages that can be read, and make no sense: numbers and times that nobody has, in an
//! order that nobody keeps to. Either end must outlive whatever the other says.
//!
//! An input is a sequence of messages, each with its length in two bytes before it.

use ddbx_central::driver::Session;
use ddbx_protocol::control::{Request, Whom};
use ddbx_protocol::link::Role;
use ddbx_protocol::link::outside::{self, From};
use ddbx_protocol::{
    AllOn, Attach, Delay, FromCentral, FromSatellite, Gate, MethodName, Mode, ProcessIndex,
    ProcessName, RealTime, RpcEvent, Stack,
};
use ddbx_satellite::logic::Satellite;
use ddbx_satellite::logic::strand::{Strand, StrandId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::link::binary;
use super::{Decoder, messages};

/// A session that hears this from a satellite. (It has a thread of its own, whose memory is
/// not measured.)
pub(super) const CENTRAL: Decoder =
    Decoder::new("central", || conversations(&messages::from_satellite()), central_hears).share(10);

/// A satellite that hears this from central, while calls come into its process.
pub(super) const SATELLITE: Decoder =
    Decoder::new("satellite", || conversations(&messages::from_central()), satellite_hears)
        .share(20);

fn central_hears(input: &[u8]) -> bool {
    let session = Session::start().expect("a thread");
    let process = ProcessIndex(1);
    let name = ProcessName::new("inventory").expect("a name");
    let attach = Attach { process, name, own_name: None, pid: 1, key: messages::key() };
    let member = session.join(attach, Box::new(drop)).expect("a session that has begun");
    let heard =
        each::<FromSatellite>(input, From::Dialler, |message| session.hear(member, message));
    let asked = [
        Request::Session,
        Request::Processes,
        Request::Holds,
        Request::Breakpoints,
        Request::Watched,
        Request::Replay,
        Request::Continue(Whom::All),
    ];
    for request in asked {
        let what = format!("{request:?}");
        assert!(session.request(request).is_some(), "the session has ended before {what}");
    }
    session.leave(member);
    assert!(session.request(Request::Session).is_some(), "the session has ended");
    heard
}

fn satellite_hears(input: &[u8]) -> bool {
    let here = ProcessIndex(1);
    let mut satellite = Satellite::new(here, Mode::Permit, AllOn);
    let gate = Gate::Rpc(RpcEvent::Arrive, MethodName::new("World.hello").expect("a name"));
    let (mut now, mut strands) = (RealTime::from_nanos(1_000), 0);
    satellite.handle_attached(now);
    let heard = each::<FromCentral>(input, From::Listener, |message| {
        now = now + std::time::Duration::from_micros(7);
        if let FromCentral::Says(message) = message {
            satellite.handle_central(now, message);
        }
        strands += 1;
        let strand = Strand::new(StrandId(strands), Stack::home(here), Delay::from_nanos(strands));
        satellite.handle_event(now, &strand, &gate);
        satellite.handle_timeout(now);
        while satellite.poll_output().is_some() {}
    });
    let _ = satellite.poll_timeout();
    satellite.handle_lost(now);
    while satellite.poll_output().is_some() {}
    assert_eq!(satellite.stopped(), 0, "without central nobody is held");
    heard
}

/// False if a message could not be read. The others count all the same: that a connection
/// ends with the first bad one is tested elsewhere.
fn each<T: DeserializeOwned>(input: &[u8], from: From, mut say: impl FnMut(T)) -> bool {
    let (mut rest, mut all_read) = (input, true);
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = after.len().min(u16::from_le_bytes(*length).into());
        let (body, after) = after.split_at(length);
        rest = after;
        let message = outside::message(body, (Role::Satellite, from));
        all_read &= message.map(&mut say).is_ok();
    }
    all_read
}

/// All of them, and each two in a row.
fn conversations<T: Serialize>(messages: &[T]) -> Vec<Vec<u8>> {
    let with_length = |message: &T| {
        let body = binary(message);
        [&(body.len() as u16).to_le_bytes(), &body[..]].concat()
    };
    let all: Vec<Vec<u8>> = messages.iter().map(with_length).collect();
    let pairs = all.windows(2).map(<[Vec<u8>]>::concat);
    pairs.chain([all.concat()]).collect()
}
