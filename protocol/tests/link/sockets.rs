//! Files: sockets, their directory, secrets.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener as StdListener;
use std::path::Path;
use std::pin::pin;

use ddbx_protocol::link::{
    Address, BindError, DialError, DirectoryError, HandshakeError, Listener, Refusal, Role, Secret,
    SecretError, dial, is_alive,
};

use crate::{Place, any_port, meet};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o777
}

#[tokio::test]
async fn a_socket_is_ours_alone_and_goes_with_its_listener() {
    let place = Place::new();
    let socket = place.path().join("s.sock");
    let listener = place.listen().await;
    assert_eq!(mode(&socket), 0o600);
    assert!(is_alive(&place.unix()).await);
    drop(listener);
    assert!(!socket.exists());
    assert!(!is_alive(&place.unix()).await);
}

#[tokio::test]
async fn a_socket_of_somebody_else_is_not_removed() {
    let place = Place::new();
    let first = place.listen().await;
    fs::remove_file(place.path().join("s.sock")).unwrap();
    let second = place.listen().await;
    drop(first);
    assert!(is_alive(second.address()).await);
}

#[tokio::test]
async fn a_living_session_is_not_replaced() {
    let place = Place::new();
    let listener = place.listen().await;
    let refused = Listener::bind(&place.unix(), None).await.unwrap_err();
    assert!(matches!(refused, BindError::Running(_)), "{refused}");
    assert!(refused.to_string().contains("already"), "{refused}");

    // The look at it counts as somebody who left again.
    let looked = listener.accept().await.unwrap().handshake().await.unwrap_err();
    assert!(matches!(looked, HandshakeError::Closed), "{looked}");
    let (listened, dialled) = meet(&listener, None, Role::Controller).await;
    assert!(listened.is_ok() && dialled.is_ok());
}

#[tokio::test]
async fn a_port_in_use_is_not_shared() {
    let place = Place::new();
    let listener = Listener::bind(&any_port(), Some(place.secret("one"))).await.unwrap();
    assert!(is_alive(listener.address()).await);
    let address = listener.address().clone();
    let refused = Listener::bind(&address, Some(place.secret("two"))).await.unwrap_err();
    assert!(matches!(refused, BindError::Running(_)), "{refused}");
}

#[tokio::test]
async fn a_dead_socket_is_replaced() {
    let place = Place::new();
    let socket = place.path().join("s.sock");
    // Unlike ours, the standard library's listener leaves its file behind.
    drop(StdListener::bind(&socket).unwrap());
    assert!(socket.exists());
    let error = dial(&place.unix(), None, Role::Satellite).await.unwrap_err();
    assert!(matches!(error, DialError::NoSession(_)), "{error}");

    let listener = place.listen().await;
    assert_eq!(mode(&socket), 0o600);
    let (listened, dialled) = meet(&listener, None, Role::Controller).await;
    assert!(listened.is_ok() && dialled.is_ok());
}

/// Two that find the same dead socket at once: the slower one would remove the
/// living socket of the faster.
#[tokio::test]
async fn sessions_in_one_directory_start_one_after_another() {
    let place = Place::new();
    let address = place.unix();
    let starting = File::open(place.path()).unwrap();
    starting.lock().unwrap();
    let mut second = pin!(Listener::bind(&address, None));
    for _ in 0..100 {
        assert!(futures::poll!(&mut second).is_pending());
        tokio::task::yield_now().await;
    }
    drop(starting);
    second.await.unwrap();
}

#[tokio::test]
async fn what_is_no_socket_is_left_alone() {
    let place = Place::new();
    let path = place.path().join("s.sock");
    fs::write(&path, "precious").unwrap();
    let refused = Listener::bind(&place.unix(), None).await.unwrap_err();
    assert!(matches!(refused, BindError::NotASocket(_)), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[tokio::test]
async fn a_directory_that_is_missing_is_not_made() {
    let place = Place::new();
    let directory = place.path().join("missing");
    let address = Address::Unix(directory.join("s.sock"));
    let refused = Listener::bind(&address, None).await.unwrap_err();
    assert!(matches!(refused, BindError::Directory(DirectoryError::Missing(_))), "{refused}");
    assert!(!directory.exists());
    let error = dial(&address, None, Role::Satellite).await.unwrap_err();
    assert!(matches!(error, DialError::NoSession(_)), "{error}");
    let error = dial(&place.unix(), None, Role::Satellite).await.unwrap_err();
    assert!(matches!(error, DialError::NoSession(_)), "{error}");
}

#[tokio::test]
async fn a_directory_that_is_a_link_is_refused() {
    let place = Place::new();
    let real = Place::new();
    let link = place.path().join("link");
    symlink(real.path(), &link).unwrap();
    let address = Address::Unix(link.join("s.sock"));
    let refused = Listener::bind(&address, None).await.unwrap_err();
    assert!(matches!(refused, BindError::Directory(DirectoryError::Symlink(_))), "{refused}");

    let _living = real.listen().await;
    assert!(is_alive(&address).await);
    refused_as_link(&address).await;

    // Nor may the socket itself be a link.
    symlink(real.path().join("s.sock"), place.path().join("s.sock")).unwrap();
    refused_as_link(&place.unix()).await;
    let refused = Listener::bind(&place.unix(), None).await.unwrap_err();
    assert!(matches!(refused, BindError::NotASocket(_)), "{refused}");
}

async fn refused_as_link(address: &Address) {
    let error = dial(address, None, Role::Satellite).await.unwrap_err();
    let DialError::NotAllowed(Refusal::Directory(DirectoryError::Symlink(_))) = error else {
        panic!("{error}")
    };
}

#[tokio::test]
async fn a_directory_that_others_can_reach_is_refused() {
    for open in [0o777, 0o750, 0o701] {
        let place = Place::new();
        let listener = place.listen().await;
        fs::set_permissions(place.path(), Permissions::from_mode(open)).unwrap();
        let error = dial(listener.address(), None, Role::Satellite).await.unwrap_err();
        let DialError::NotAllowed(Refusal::Directory(DirectoryError::Open { .. })) = error else {
            panic!("{error}")
        };
        drop(listener);
        let refused = Listener::bind(&place.unix(), None).await.unwrap_err();
        let text = refused.to_string();
        assert!(matches!(refused, BindError::Directory(DirectoryError::Open { .. })), "{text}");
        assert!(text.contains(&format!("mode {open:o}")) && text.contains("chmod 700"), "{text}");
    }
}

#[tokio::test]
async fn a_path_that_is_too_long_is_refused_with_its_length() {
    let place = Place::new();
    let address = Address::Unix(place.path().join("x".repeat(107)));
    let refused = Listener::bind(&address, None).await.unwrap_err().to_string();
    assert!(refused.contains("at most 107 bytes"), "{refused}");
    let refused = dial(&address, None, Role::Satellite).await.unwrap_err().to_string();
    assert!(refused.contains("at most 107 bytes"), "{refused}");
}

#[tokio::test]
async fn a_secret_is_written_once_for_us_alone_and_read_again() {
    let place = Place::new();
    let path = place.path().join("secret");
    let secret = Secret::create(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    assert!(matches!(Secret::create(&path), Err(SecretError::Create { .. })));

    let read = Secret::read(&path).unwrap();
    let listener = Listener::bind(&any_port(), Some(secret)).await.unwrap();
    let (listened, dialled) = meet(&listener, Some(&read), Role::Satellite).await;
    assert!(listened.is_ok() && dialled.is_ok());

    // Two secrets are never the same.
    let (one, other) = (fs::read(&path).unwrap(), place.path().join("other"));
    Secret::create(&other).unwrap();
    assert_ne!(one, fs::read(other).unwrap());
}

#[test]
fn a_secret_that_others_can_read_is_none() {
    let place = Place::new();
    let path = place.path().join("secret");
    Secret::create(&path).unwrap();
    for open in [0o640, 0o604, 0o620] {
        fs::set_permissions(&path, Permissions::from_mode(open)).unwrap();
        let error = Secret::read(&path).unwrap_err();
        assert!(matches!(error, SecretError::Open { mode, .. } if mode == open), "{error}");
    }
    assert!(matches!(Secret::read(&place.path().join("missing")), Err(SecretError::Read { .. })));
}

#[test]
fn a_malformed_secret_is_refused() {
    let place = Place::new();
    let path = place.path().join("secret");
    Secret::create(&path).unwrap();
    for bad in [String::new(), "0".repeat(63), "0".repeat(65), "0".repeat(9999), "g".repeat(64)] {
        fs::write(&path, bad).unwrap();
        let error = Secret::read(&path).unwrap_err();
        assert!(matches!(error, SecretError::Malformed(_)), "{error}");
    }
    fs::write(&path, "0".repeat(64)).unwrap();
    Secret::read(&path).unwrap();
}
