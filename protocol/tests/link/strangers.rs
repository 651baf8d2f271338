//! Whoever does not belong to the session.

use ddbx_protocol::link::{
    Address, BindError, DialError, HandshakeError, Listener, Refusal, Role, VERSION, dial,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};

use crate::{Place, any_port, meet};

/// What a dialler of some version begins with.
fn hello(version: u16, role: u8) -> Vec<u8> {
    [b"ddbx".as_slice(), &version.to_be_bytes(), &[role], &[9; 32]].concat()
}

async fn port_of(listener: &Listener) -> TcpStream {
    match listener.address() {
        Address::Tcp(at) => TcpStream::connect(at).await.unwrap(),
        other => panic!("{other} is no port"),
    }
}

#[tokio::test]
async fn another_version_is_told_ours() {
    let place = Place::new();
    let listener = place.listen().await;
    let mut raw = UnixStream::connect(place.path().join("s.sock")).await.unwrap();
    // A role that only version 9 knows: the version counts first.
    raw.write_all(&hello(9, 200)).await.unwrap();
    let error = listener.accept().await.unwrap().handshake().await.unwrap_err();
    assert!(matches!(error, HandshakeError::Version { ours: VERSION, theirs: 9 }), "{error}");

    let mut answer = Vec::new();
    raw.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer.len(), 39);
    assert_eq!(answer[..7], [b"ddbx".as_slice(), &VERSION.to_be_bytes(), &[0]].concat());
}

#[tokio::test]
async fn a_session_of_another_version_is_named() {
    let place = Place::new();
    let listener = UnixListener::bind(place.path().join("s.sock")).unwrap();
    let central = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; 39]).await.unwrap();
        stream.write_all(&hello(9, 0)).await.unwrap();
    };
    let address = place.unix();
    let ((), dialled) = tokio::join!(central, dial(&address, None, Role::Satellite));
    let error = dialled.unwrap_err();
    assert!(matches!(error, DialError::Version { ours: VERSION, theirs: 9 }), "{error}");
    let text = error.to_string();
    assert!(text.contains(&format!("version {VERSION}")) && text.contains("version 9"), "{text}");
    assert!(text.contains("rebuild the service against the same ddbx"), "{text}");
}

#[tokio::test]
async fn the_wrong_secret_is_refused_on_both_sides() {
    let place = Place::new();
    let listener = Listener::bind(&any_port(), Some(place.secret("right"))).await.unwrap();
    let (listened, dialled) = meet(&listener, Some(&place.secret("wrong")), Role::Satellite).await;
    let refused = listened.unwrap_err();
    assert!(matches!(refused, HandshakeError::NotAllowed(Refusal::WrongSecret)), "{refused}");
    let refused = dialled.unwrap_err();
    assert!(matches!(refused, DialError::NotAllowed(Refusal::WrongSecret)), "{refused}");
}

#[tokio::test]
async fn a_session_with_a_secret_asks_for_it_on_a_unix_socket_too() {
    let place = Place::new();
    let listener = Listener::bind(&place.unix(), Some(place.secret("secret"))).await.unwrap();
    let (listened, dialled) = meet(&listener, None, Role::Controller).await;
    assert!(listened.is_err());
    let refused = dialled.unwrap_err();
    assert!(matches!(refused, DialError::NotAllowed(Refusal::SecretNeeded)), "{refused}");
    assert!(refused.to_string().contains("DDBX_SECRET_FILE"), "{refused}");
}

#[tokio::test]
async fn tcp_needs_a_secret_and_the_loopback_interface() {
    let place = Place::new();
    let refused = Listener::bind(&any_port(), None).await.unwrap_err();
    assert!(matches!(refused, BindError::NotAllowed(Refusal::SecretNeeded)), "{refused}");
    let secret = place.secret("secret");
    for everywhere in ["tcp:0.0.0.0:0", "tcp:[::]:0", "tcp:192.0.2.1:4000"] {
        let address = Address::parse(everywhere).unwrap();
        let refused = Listener::bind(&address, Some(secret.clone())).await.unwrap_err();
        assert!(matches!(refused, BindError::NotAllowed(Refusal::NotLoopback(_))), "{refused}");
        let refused = dial(&address, Some(&secret), Role::Satellite).await.unwrap_err();
        assert!(matches!(refused, DialError::NotAllowed(Refusal::NotLoopback(_))), "{refused}");
    }
    let listener = Listener::bind(&any_port(), Some(secret)).await.unwrap();
    let refused = dial(listener.address(), None, Role::Satellite).await.unwrap_err();
    assert!(matches!(refused, DialError::NotAllowed(Refusal::SecretNeeded)), "{refused}");
}

/// Everything that a dialler once said, said again by somebody who overheard it.
#[tokio::test]
async fn a_handshake_cannot_be_replayed() {
    let place = Place::new();
    let secret = place.secret("secret");
    let listener = Listener::bind(&any_port(), Some(secret.clone())).await.unwrap();

    // Somebody in between, who notes what the dialler says.
    let tap = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tap_address = Address::Tcp(tap.local_addr().unwrap());
    let overhear = async {
        let (mut near, _) = tap.accept().await.unwrap();
        let mut far = port_of(&listener).await;
        let (mut hello, mut answer, mut proof) = ([0; 39], [0; 39], [0; 32]);
        near.read_exact(&mut hello).await.unwrap();
        far.write_all(&hello).await.unwrap();
        far.read_exact(&mut answer).await.unwrap();
        near.write_all(&answer).await.unwrap();
        near.read_exact(&mut proof).await.unwrap();
        far.write_all(&proof).await.unwrap();
        let mut theirs = [0; 32];
        far.read_exact(&mut theirs).await.unwrap();
        near.write_all(&theirs).await.unwrap();
        (hello, proof)
    };
    let listen = async { listener.accept().await.unwrap().handshake().await };
    let dialler = dial(&tap_address, Some(&secret), Role::Controller);
    let ((hello, proof), listened, dialled) = tokio::join!(overhear, listen, dialler);
    dialled.unwrap();
    assert_eq!(listened.unwrap().0, Role::Controller);

    let mut again = port_of(&listener).await;
    again.write_all(&[hello.as_slice(), &proof].concat()).await.unwrap();
    let refused = listener.accept().await.unwrap().handshake().await.unwrap_err();
    assert!(matches!(refused, HandshakeError::NotAllowed(Refusal::WrongSecret)), "{refused}");
    let mut said = Vec::new();
    again.read_to_end(&mut said).await.unwrap();
    assert_eq!(said.len(), 39, "only the opening, no proof");
}

#[tokio::test]
async fn a_browser_gets_no_word() {
    let place = Place::new();
    let listener = Listener::bind(&any_port(), Some(place.secret("secret"))).await.unwrap();
    let mut browser = port_of(&listener).await;
    // Four bytes are enough to know, and leave nothing unread that would turn the
    // end of the connection into an error.
    browser.write_all(b"GET ").await.unwrap();
    let error = listener.accept().await.unwrap().handshake().await.unwrap_err();
    assert!(matches!(error, HandshakeError::Foreign), "{error}");
    assert_eq!(browser.read(&mut [0; 1]).await.unwrap(), 0);

    let mut browser = port_of(&listener).await;
    browser.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let error = listener.accept().await.unwrap().handshake().await.unwrap_err();
    assert!(matches!(error, HandshakeError::Foreign), "{error}");
    assert_eq!(browser.read(&mut [0; 1]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn an_unknown_role_is_foreign() {
    let place = Place::new();
    let listener = place.listen().await;
    let mut raw = UnixStream::connect(place.path().join("s.sock")).await.unwrap();
    raw.write_all(&hello(VERSION, 3)).await.unwrap();
    let error = listener.accept().await.unwrap().handshake().await.unwrap_err();
    assert!(matches!(error, HandshakeError::Foreign), "{error}");
}

#[tokio::test]
async fn a_session_that_is_something_else_is_recognised() {
    let place = Place::new();
    let server = UnixListener::bind(place.path().join("s.sock")).unwrap();
    let answer = async {
        let (mut stream, _) = server.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream
    };
    let address = place.unix();
    let (_stream, dialled) = tokio::join!(answer, dial(&address, None, Role::Satellite));
    let error = dialled.unwrap_err();
    let DialError::Failed { source: HandshakeError::Foreign, .. } = error else {
        panic!("{error}")
    };
}

#[tokio::test]
async fn somebody_silent_keeps_nobody_waiting() {
    let place = Place::new();
    let listener = place.listen().await;
    let _silent = UnixStream::connect(place.path().join("s.sock")).await.unwrap();
    let silent = tokio::spawn(listener.accept().await.unwrap().handshake());
    let (listened, dialled) = meet(&listener, None, Role::Satellite).await;
    assert!(listened.is_ok() && dialled.is_ok());
    assert!(!silent.is_finished());
}

#[tokio::test(start_paused = true)]
async fn somebody_silent_is_given_up() {
    let place = Place::new();
    let listener = place.listen().await;
    let _silent = UnixStream::connect(place.path().join("s.sock")).await.unwrap();
    let error = listener.accept().await.unwrap().handshake().await.unwrap_err();
    assert!(matches!(error, HandshakeError::Silent), "{error}");
    // And so is a session that accepts and then says nothing.
    let error = dial(&place.unix(), None, Role::Satellite).await.unwrap_err();
    let DialError::Failed { source: HandshakeError::Silent, .. } = error else { panic!("{error}") };
}
