//! Sessions across machines: certificates of one session, and of others.

use std::fs;

use ddbx_cli::certs::{self, Valid};
use ddbx_protocol::link::{
    Address, CentralTls, KeyFiles, Keys, Listener, Locks, Role, Secret, dial,
};
use ddbx_tests::tty::Tty;
use ddbx_tests::waiting::until;
use serde_json::Value;
use time::{Duration, OffsetDateTime};

use crate::cluster::Cluster;
use crate::process::Process;

/// Opens a session with the certificates in `certs`, which are made if they are missing, at
/// all addresses of this machine: where it is reached.
fn open(cluster: &mut Cluster) -> (Process, String) {
    if !cluster.path("certs").exists() {
        cluster.ddbx_plain(&["certs", "certs"]).well();
    }
    let words = ["central", "--json", "--session", "tcp:0.0.0.0:0", "--tls", "certs"];
    let central = Process::start(&mut cluster.ddbx_command(&words));
    central.line(|line| line == "}");
    let said: Value = serde_json::from_str(&central.printed()).unwrap();
    let environment = &said["environment"];
    assert_eq!(environment["DDBX_TLS"], cluster.path("certs").to_str().unwrap());
    let session = environment["DDBX_SESSION"].as_str().unwrap().to_owned();
    assert!(session.starts_with("tcp:127.0.0.1:"), "{session}");
    cluster.use_session(&session, None);
    (central, session)
}

#[test]
fn certificates_are_made_once_and_say_what_goes_where() {
    let cluster = Cluster::new();
    let said = cluster.ddbx_plain(&["certs", "certs", "--host", "db1", "--host", "10.0.0.7"]);
    let said = said.well();
    for part in [
        "db1, localhost, 10.0.0.7, 127.0.0.1, ::1",
        "ca.pem central.pem central.key secret",
        "ca.pem client.pem client.key secret",
        "ddbx central --session tcp:0.0.0.0:4000 --tls",
        "DDBX_SESSION=tcp:db1:4000 DDBX_TLS=DIR",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = cluster.ddbx_plain(&["certs", "certs"]).refused(2);
    assert!(said.starts_with("certs is there already"), "{said}");
    let said = cluster.ddbx_plain(&["certs", "others", "--json"]).well();
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["directory"], cluster.path("others").to_str().unwrap());
    assert_eq!(said["others"][1], "client.pem");
    for words in [["--host", "a b"], ["--host", "http://db1"], ["--days", "0"]] {
        let done = cluster.ddbx_plain(&[&["certs", "more"][..], &words].concat());
        assert_eq!(done.code, 2, "{done:?}");
    }
    assert!(!cluster.path("more").exists());
}

#[test]
fn a_session_across_machines() {
    let mut cluster = Cluster::new();
    let (mut central, session) = open(&mut cluster);
    cluster.use_tls(Some("certs"));
    let _a = cluster.walker("a");
    // By name as well as by address.
    cluster.use_session(&session.replace("127.0.0.1", "localhost"), None);
    let mut caller = cluster.caller("caller");
    cluster.until_present(&["a", "caller"]);
    cluster.hold_for_long(&mut caller, "held", "a");

    let mut screen = Tty::start(&cluster.screen_command(&["--session", &session]), (100, 24));
    screen.types("2");
    screen.shows("breakpoint 1");
    screen.types("q");
    // It asks whether whoever is held shall go on.
    screen.types("n");
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome("held").what, "ok");
    drop(screen);

    cluster.ddbx(&["stop"]).well();
    assert_eq!(central.end().code(), Some(0));
}

/// Whoever shows the wrong thing is told so, at its own end, and does not take part.
#[test]
fn whoever_has_no_certificate_of_the_session_stays_out() {
    let mut cluster = Cluster::new();
    let now = OffsetDateTime::now_utc();
    let over = Valid { from: now - Duration::days(9), until: now - Duration::days(8) };
    certs::make(&cluster.path("expired"), &[], over).unwrap();
    for name in ["certs", "foreign"] {
        cluster.ddbx_plain(&["certs", name]).well();
    }
    // This session also knows the authority of the old ones.
    let read = |path: &str| fs::read_to_string(cluster.path(path)).unwrap();
    let (ours, old) = (read("certs/ca.pem"), read("expired/ca.pem"));
    fs::write(cluster.path("certs/ca.pem"), format!("{ours}{old}")).unwrap();
    let (_central, session) = open(&mut cluster);
    let secret = cluster.path("certs/secret");
    cluster.use_session(&session, Some(secret));

    // Those who do not trust the session's authority, before they show anything.
    let says = |cluster: &Cluster, sentence: &str| {
        let said = cluster.ddbx(&["ps"]).refused(1);
        assert!(said.contains(sentence), "{sentence}: {said}");
    };
    says(&cluster, "this session uses TLS: set DDBX_TLS");
    cluster.use_tls(Some("foreign"));
    says(&cluster, "the certificate of the other end is not accepted: it does not belong");
    // Those who do.
    for stranger in ["foreign", "expired"] {
        fs::write(cluster.path(stranger).join("ca.pem"), &ours).unwrap();
    }
    says(&cluster, "the session does not accept the certificate of this end: it does not belong");
    let stranger = cluster.walker("stranger");
    let complained = || Some(stranger.complained()).filter(|said| said.ends_with('\n'));
    let said = until("it says why", complained);
    assert!(said.contains("it does not belong to this session"), "{said}");
    assert!(said.contains("going on alone") && said.lines().count() == 1, "{said}");
    cluster.use_tls(Some("expired"));
    says(&cluster, "the session does not accept the certificate of this end: it has expired");
    // The right certificate, and another secret.
    fs::write(cluster.path("certs/ca.pem"), &ours).unwrap();
    cluster.use_tls(Some("certs"));
    cluster.use_session(&session, Some(cluster.path("foreign/secret")));
    says(&cluster, "different secrets");

    cluster.use_session(&session, None);
    assert_eq!(cluster.present(), Vec::<String>::new());
}

#[test]
fn central_must_be_what_it_says() {
    let mut cluster = Cluster::new();
    let now = OffsetDateTime::now_utc();
    let over = Valid { from: now - Duration::days(9), until: now - Duration::days(8) };
    certs::make(&cluster.path("certs"), &[], over).unwrap();
    let (_central, session) = open(&mut cluster);
    cluster.use_tls(Some("certs"));
    let said = cluster.ddbx(&["ps"]).refused(1);
    assert!(
        said.contains("certificate of the other end is not accepted: it has expired"),
        "{said}"
    );

    // A service that poses as central: what it has is good for dialling only.
    fs::remove_dir_all(cluster.path("certs")).unwrap();
    cluster.ddbx_plain(&["certs", "certs"]).well();
    fs::create_dir(cluster.path("posing")).unwrap();
    for (from, to) in [
        ("ca.pem", "ca.pem"),
        ("secret", "secret"),
        ("client.pem", "central.pem"),
        ("client.key", "central.key"),
        ("client.pem", "client.pem"),
        ("client.key", "client.key"),
    ] {
        fs::copy(cluster.path("certs").join(from), cluster.path("posing").join(to)).unwrap();
    }
    let words = ["central", "--json", "--session", "tcp:127.0.0.1:0", "--tls", "posing"];
    let poses = Process::start(&mut cluster.ddbx_command(&words));
    poses.line(|line| line == "}");
    let said: Value = serde_json::from_str(&poses.printed()).unwrap();
    cluster.use_session(said["session"].as_str().unwrap(), None);
    let said = cluster.ddbx(&["ps"]).refused(1);
    assert!(said.contains("the certificate of the other end is not accepted"), "{said}");

    // And one without TLS.
    let words = ["central", "--json", "--session", "tcp:127.0.0.1:0"];
    let words = [&words[..], &["--secret-file", "certs/secret"]].concat();
    let plain = Process::start(&mut cluster.ddbx_command(&words));
    plain.line(|line| line == "}");
    let said: Value = serde_json::from_str(&plain.printed()).unwrap();
    assert_ne!(said["session"], session);
    cluster.use_session(said["session"].as_str().unwrap(), None);
    let said = cluster.ddbx(&["ps"]).refused(1);
    assert!(said.contains("this session does not use TLS"), "{said}");
}

/// As over any other connection: many messages both ways, and each direction ends by itself.
#[tokio::test]
async fn messages_go_both_ways_inside_tls() {
    let cluster = Cluster::new();
    cluster.ddbx_plain(&["certs", "certs"]).well();
    let certs = cluster.path("certs");
    let any_port = Address::parse("tcp:127.0.0.1:0").unwrap();
    let secret = Some(Secret::read(&certs.join("secret")).unwrap());
    let locks = Locks { secret, tls: Some(CentralTls::read(&certs).unwrap()) };
    let listener = Listener::bind(&any_port, locks).await.unwrap();
    let files = KeyFiles { secret: None, tls: Some(&certs) };
    let keys = Keys::read(listener.address(), files).unwrap();
    for role in [Role::Satellite, Role::Controller] {
        let listens = async { listener.accept().await.unwrap().handshake().await.unwrap() };
        let dials = async { dial(listener.address(), &keys, role).await.unwrap() };
        let ((seen, central), dialled) = tokio::join!(listens, dials);
        assert_eq!(seen, role);
        let (mut to_dialler, mut from_dialler) = central.split();
        let (mut to_central, mut from_central) = dialled.split();
        // More than fits on the way at once.
        let long = "x".repeat(900_000);
        let sends = async {
            to_central.send(&long).await.unwrap();
            for number in 0..1_000u32 {
                to_central.feed(&number).await.unwrap();
            }
            to_central.flush().await.unwrap();
        };
        let hears = async {
            assert!(from_dialler.receive::<String>().await.unwrap().unwrap() == long);
            for number in 0..1_000u32 {
                assert_eq!(from_dialler.receive::<u32>().await.unwrap(), Some(number));
            }
        };
        tokio::join!(sends, hears);
        drop(to_central);
        assert_eq!(from_dialler.receive::<u32>().await.unwrap(), None);
        to_dialler.send(&7u32).await.unwrap();
        assert_eq!(from_central.receive::<u32>().await.unwrap(), Some(7));
        drop(to_dialler);
        assert_eq!(from_central.receive::<u32>().await.unwrap(), None);
    }
}
