//! Messages over a connection.

use std::pin::pin;

use ddbx_protocol::link::{Connection, FrameError, Listener, Receiver, Role, Sender, VERSION};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::{Place, any_port, meet};

const MIB: usize = 1 << 20;

async fn connect(place: &Place, role: Role) -> (Connection, Connection) {
    let (listened, dialled) = meet(&place.listen().await, None, role).await;
    (listened.unwrap().1, dialled.unwrap())
}

#[tokio::test]
async fn both_transports_carry_both_roles_both_ways() {
    let place = Place::new();
    let secret = place.secret("secret");
    for (address, secret) in
        [(place.unix(), None), (place.unix(), Some(&secret)), (any_port(), Some(&secret))]
    {
        for role in [Role::Satellite, Role::Controller] {
            let listener = Listener::bind(&address, secret.cloned()).await.unwrap();
            let (listened, dialled) = meet(&listener, secret, role).await;
            let (seen, central) = listened.unwrap();
            assert_eq!(seen, role);
            let (mut to_dialler, mut from_dialler) = central.split();
            let (mut to_central, mut from_central) = dialled.unwrap().split();

            to_central.send(&("hello", 1u64)).await.unwrap();
            assert_eq!(received::<(String, u64)>(&mut from_dialler).await, ("hello".into(), 1));
            for number in 0..100u32 {
                to_dialler.feed(&number).await.unwrap();
            }
            to_dialler.flush().await.unwrap();
            for number in 0..100u32 {
                assert_eq!(received::<u32>(&mut from_central).await, number);
            }

            drop(to_central);
            assert_eq!(from_dialler.receive::<u32>().await.unwrap(), None);
            // One direction has ended, the other has not.
            to_dialler.send(&7u32).await.unwrap();
            assert_eq!(received::<u32>(&mut from_central).await, 7);
        }
    }
}

#[tokio::test]
async fn satellites_speak_bincode_and_controllers_json() {
    for (role, body) in [(Role::Satellite, &[1, 5][..]), (Role::Controller, b"[true,5]")] {
        let place = Place::new();
        let listener = place.listen().await;
        let (_, mut receiver, mut raw) = raw_peer(&place, &listener, role).await;
        raw.write_all(&(body.len() as u32).to_be_bytes()).await.unwrap();
        raw.write_all(body).await.unwrap();
        assert_eq!(received::<(bool, u8)>(&mut receiver).await, (true, 5), "{role:?}");
    }
}

/// A future that is dropped in the middle of a message takes nothing with it.
#[tokio::test]
async fn receiving_can_be_given_up_at_any_byte() {
    let place = Place::new();
    let listener = place.listen().await;
    let (_, mut receiver, mut raw) = raw_peer(&place, &listener, Role::Controller).await;
    for byte in b"\0\0\0\x07\"whole\"" {
        {
            let mut receive = pin!(receiver.receive::<String>());
            assert!(futures::poll!(&mut receive).is_pending());
        }
        raw.write_all(&[*byte]).await.unwrap();
    }
    assert_eq!(received::<String>(&mut receiver).await, "whole");
}

#[tokio::test]
async fn a_satellite_can_send_less_than_it_can_be_sent() {
    let place = Place::new();
    let (central, satellite) = connect(&place, Role::Satellite).await;
    let (mut to_satellite, mut from_satellite) = central.split();
    let (mut to_central, mut from_central) = satellite.split();
    let long = "x".repeat(2 * MIB);

    let error = to_central.send(&long).await.unwrap_err();
    assert!(matches!(error, FrameError::TooLong { bytes_max: MIB }), "{error}");
    // Nothing of it was sent.
    to_central.send(&"short").await.unwrap();
    assert_eq!(received::<String>(&mut from_satellite).await, "short");

    let send = async { to_satellite.send(&long).await.unwrap() };
    let ((), whole) = tokio::join!(send, received::<String>(&mut from_central));
    assert!(whole == long);
}

#[tokio::test]
async fn a_bad_frame_ends_its_connection_and_no_other() {
    let place = Place::new();
    let listener = place.listen().await;
    let (listened, dialled) = meet(&listener, None, Role::Satellite).await;
    let (mut good, _reading) = dialled.unwrap().split();
    let (_writing, mut from_good) = listened.unwrap().1.split();

    let oversize = (MIB as u32 + 1).to_be_bytes();
    let cases: [(&str, &[u8]); 5] = [
        ("TooLong", &oversize),
        // Two numbers where one belongs; the good frame after that is not read.
        ("Malformed", &[0, 0, 0, 2, 7, 7, 0, 0, 0, 1, 7]),
        ("Malformed", &[0, 0, 0, 0]),
        ("Truncated", &[0, 0, 0, 2, 7]),
        ("Truncated", &[0, 0, 0, 2]),
    ];
    for (expected, bytes) in cases {
        let (_, mut receiver, mut raw) = raw_peer(&place, &listener, Role::Satellite).await;
        raw.write_all(bytes).await.unwrap();
        drop(raw);
        let error = receiver.receive::<u8>().await.unwrap_err();
        assert!(format!("{error:?}").starts_with(expected), "{bytes:?}: {error:?}");
        assert_eq!(receiver.receive::<u8>().await.unwrap(), None);

        good.send(&7u8).await.unwrap();
        assert_eq!(received::<u8>(&mut from_good).await, 7);
    }
}

async fn received<T: serde::de::DeserializeOwned>(receiver: &mut Receiver) -> T {
    receiver.receive().await.unwrap().expect("a message")
}

/// A peer that shakes hands properly and then sends what the test wants.
async fn raw_peer(
    place: &Place,
    listener: &Listener,
    role: Role,
) -> (Sender, Receiver, UnixStream) {
    let mut raw = UnixStream::connect(place.path().join("s.sock")).await.unwrap();
    let word = if role == Role::Satellite { 1 } else { 2 };
    let version = VERSION.to_be_bytes();
    raw.write_all(&[b"ddbx".as_slice(), &version, &[word], &[9; 32]].concat()).await.unwrap();
    let (seen, central) = listener.accept().await.unwrap().handshake().await.unwrap();
    assert_eq!(seen, role);
    // Read, or the end of the connection would be a reset.
    raw.read_exact(&mut [0; 39]).await.unwrap();
    let (sender, receiver) = central.split();
    (sender, receiver, raw)
}
