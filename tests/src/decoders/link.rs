//! What comes over connections to and from central: handshakes and messages.

use std::cell::LazyCell;

use bincode::Options;
use ddbx_protocol::control::{Reply, Request};
use ddbx_protocol::link::outside::{self, From};
use ddbx_protocol::link::{Role, Secret, VERSION};
use ddbx_protocol::{FromCentral, FromSatellite};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

use super::{DIALLED_BYTES_MAX, Decoder, FRAME_BYTES_MAX, messages};

/// What a dialler says.
pub(super) const LISTENER: Decoder = Decoder::new("handshake_listener", openings, |said| {
    [true, false].map(|secret| meet(said, secret, true)).contains(&true)
})
.heap(64 << 10);

/// What a listener says.
pub(super) const DIALLER: Decoder = Decoder::new("handshake_dialler", openings, |said| {
    [true, false].map(|secret| meet(said, secret, false)).contains(&true)
})
.heap(64 << 10);

/// The body of a message to central.
pub(super) const FROM_SATELLITE: Decoder = Decoder::new(
    "from_satellite",
    || messages::from_satellite().iter().map(binary).collect(),
    |body| outside::message::<FromSatellite>(body, SATELLITE).is_ok(),
)
.worst(messages::heavy_from_satellite)
.heap(2 * DIALLED_BYTES_MAX);

/// The body of a message to a satellite.
pub(super) const FROM_CENTRAL: Decoder = Decoder::new(
    "from_central",
    || messages::from_central().iter().map(binary).collect(),
    |body| outside::message::<FromCentral>(body, (Role::Satellite, From::Listener)).is_ok(),
)
.worst(messages::heavy_from_central);

/// The body of a request to central.
pub(super) const REQUEST: Decoder = Decoder::new(
    "request",
    || messages::requests().iter().map(json).collect(),
    |body| outside::message::<Request>(body, (Role::Controller, From::Dialler)).is_ok(),
)
.worst(messages::heavy_requests)
// Text with escapes is there twice.
.heap(3 * DIALLED_BYTES_MAX);

/// The body of a reply of central.
pub(super) const REPLY: Decoder = Decoder::new(
    "reply",
    || messages::replies().iter().map(json).collect(),
    |body| outside::message::<Reply>(body, (Role::Controller, From::Listener)).is_ok(),
);

/// All that comes over a connection after its handshake; the first byte says over which.
pub(super) const FRAMES: Decoder = Decoder::new("frames", streams, |input| {
    let Some((which, bytes)) = input.split_first() else { return false };
    match which % 4 {
        0 => read::<FromSatellite>(bytes, SATELLITE),
        1 => read::<FromCentral>(bytes, (Role::Satellite, From::Listener)),
        2 => read::<Request>(bytes, (Role::Controller, From::Dialler)),
        _ => read::<Reply>(bytes, (Role::Controller, From::Listener)),
    }
})
.worst(|| {
    // A frame that is announced as large as it may be, and one larger.
    let lengths = [DIALLED_BYTES_MAX, DIALLED_BYTES_MAX + 1, FRAME_BYTES_MAX, usize::MAX];
    let announced = |which: u8, length: usize| {
        [&[which][..], &(length as u32).to_be_bytes(), &[0; 4096]].concat()
    };
    (0..4).flat_map(|which| lengths.map(|length| announced(which, length))).collect()
});

const SATELLITE: (Role, From) = (Role::Satellite, From::Dialler);

fn read<T: DeserializeOwned>(bytes: &[u8], from: (Role, From)) -> bool {
    outside::messages::<T>(bytes, from, drop).is_ok()
}

/// A body with its length before it.
fn frame(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes(), body].concat()
}

/// As satellites and central write.
pub(super) fn binary<T: Serialize>(message: &T) -> Vec<u8> {
    bincode::DefaultOptions::new().serialize(message).expect("messages can be written")
}

/// As controllers and central write.
pub(super) fn json<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).expect("messages can be written")
}

fn streams() -> Vec<Vec<u8>> {
    let stream = |which: u8, bodies: Vec<Vec<u8>>| {
        let frames = bodies.iter().take(6).flat_map(|body| frame(body));
        [which].into_iter().chain(frames).collect()
    };
    let bodies = [FROM_SATELLITE, FROM_CENTRAL, REQUEST, REPLY].map(|of| (of.seeds)());
    (0..).zip(bodies).map(|(which, bodies)| stream(which, bodies)).collect()
}

thread_local! {
    /// Handshakes have a deadline, so they need somebody who keeps time.
    static TIME: LazyCell<(Runtime, Secret)> = LazyCell::new(|| {
        let runtime = Builder::new_current_thread().enable_time().build();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let secret = Secret::create(&directory.path().join("secret")).expect("a new secret");
        (runtime.expect("a runtime"), secret)
    });
}

fn meet(said: &[u8], with_secret: bool, as_listener: bool) -> bool {
    TIME.with(|time| {
        let (runtime, secret) = &**time;
        let secret = with_secret.then_some(secret);
        runtime.block_on(async {
            match as_listener {
                true => outside::answer(said, secret).await.is_ok(),
                false => outside::dial(said, secret).await.is_ok(),
            }
        })
    })
}

/// The first words of either side, and a proof that proves nothing.
fn openings() -> Vec<Vec<u8>> {
    let opening = |version: u16, word: u8| {
        [&b"ddbx"[..], &version.to_be_bytes(), &[word], &[7; 32], &[9; 32]].concat()
    };
    let versions = [VERSION, VERSION + 1];
    versions.iter().flat_map(|version| (0..=3).map(|word| opening(*version, word))).collect()
}
