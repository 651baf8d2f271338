//! A satellite that has very much to tell, and a central that takes its time: neither takes
//! the other for lost.

#![allow(clippy::unwrap_used)]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use ddbx_protocol::link::{Address, Keys, Listener};
use ddbx_protocol::session::{HEARTBEAT, LEASE};
use ddbx_protocol::{FromCentral, FromSatellite, Mode, ProcessIndex, ProcessName, ToCentral};
use ddbx_satellite::driver::{Handle, NothingToReport};
use ddbx_satellite::link::{Target, start};
use tokio::time::{interval, sleep};

/// How many things it has to tell: many more than a socket takes at once.
const TOLD: u64 = 60_000;

/// So many messages are taken at a time, and then none for a while. That is slow, and fast
/// enough for the socket: one that was full takes more only when most of it was read.
const AT_ONCE: u64 = 4_000;
const PAUSE: Duration = Duration::from_millis(300);

#[tokio::test]
async fn whoever_tells_much_is_not_lost() {
    let ours_alone = Permissions::from_mode(0o700);
    let dir = tempfile::Builder::new().permissions(ours_alone).tempdir().unwrap();
    let address = Address::Unix(dir.path().join("session.sock"));
    let listener = Listener::bind(&address, None).await.unwrap();
    let name = ProcessName::new("lab").unwrap();
    let satellite =
        Handle::start(ProcessIndex(1), name.clone(), Arc::new(NothingToReport)).unwrap();
    let target = Target { address, keys: Keys::default() };
    let _first = start(satellite.inbox(), target).unwrap();

    let (_, connection) = listener.accept().await.unwrap().handshake().await.unwrap();
    let (mut sender, mut receiver) = connection.split();
    let attach = receiver.receive::<FromSatellite>().await.unwrap();
    assert!(matches!(attach, Some(FromSatellite::Attach(_))), "{attach:?}");
    sender.send(&FromCentral::Welcome { name, start: 1, mode: Mode::Permit }).await.unwrap();
    sender.send(&FromCentral::Ready).await.unwrap();
    tokio::spawn(async move {
        let mut heartbeat = interval(HEARTBEAT);
        while sender.send(&FromCentral::Heartbeat).await.is_ok() {
            heartbeat.tick().await;
        }
    });
    // Until it has been welcomed nobody is told anything.
    while !matches!(receiver.receive().await.unwrap(), Some(FromSatellite::Status(_))) {}
    for peer in 0..TOLD {
        satellite.connected(ProcessIndex(2 + peer));
    }

    let began = tokio::time::Instant::now();
    let mut told = 0;
    while told < TOLD {
        let message = receiver.receive::<FromSatellite>().await.unwrap();
        let message = message.expect("it does not hang up before it has told all");
        let counts = matches!(message, FromSatellite::Says(ToCentral::Connected { .. }));
        told += u64::from(counts);
        if counts && told.is_multiple_of(AT_ONCE) {
            sleep(PAUSE).await;
        }
    }
    assert!(began.elapsed() > 2 * LEASE, "it was slow: {:?}", began.elapsed());
}
