//! Sessions over TCP, several at once, and what a session that was killed leaves.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ddbx_tests::waiting::until;
use serde_json::Value;

use crate::cluster::{Cluster, SESSION};
use crate::process::Process;

/// Opens a session over TCP, at a port that the system chooses: its address.
fn open_tcp(cluster: &Cluster, secret: &str) -> (Process, String) {
    let words = ["central", "--json", "--session", "tcp:127.0.0.1:0", "--secret-file", secret];
    let central = Process::start(&mut cluster.ddbx_command(&words));
    central.line(|line| line == "}");
    let said: Value = serde_json::from_str(&central.printed()).unwrap();
    assert_eq!(said["session"], said["environment"]["DDBX_SESSION"]);
    let file = said["environment"]["DDBX_SECRET_FILE"].as_str().unwrap();
    assert_eq!(file, cluster.path(secret).to_str().unwrap());
    let address = said["session"].as_str().unwrap().to_owned();
    (central, address)
}

#[test]
fn a_session_over_tcp_has_a_secret() {
    let mut cluster = Cluster::new();
    let (_central, address) = open_tcp(&cluster, "secret");
    let mode = fs::metadata(cluster.path("secret")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    cluster.use_session(&address, Some(cluster.path("secret")));
    let _a = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    cluster.until_present(&["a", "caller"]);
    cluster.hold_for_long(&mut caller, "held", "a");
    cluster.ddbx(&["continue"]).well();
    assert_eq!(caller.outcome("held").what, "ok");
}

#[test]
fn nobody_takes_part_with_another_secret() {
    let mut cluster = Cluster::new();
    let (_one, address) = open_tcp(&cluster, "secret");
    let (_two, _) = open_tcp(&cluster, "other");

    let said = cluster.ddbx_plain(&["ps", "--session", &address]).refused(2);
    assert!(said.contains("--secret-file"), "{said}");
    cluster.use_session(&address, Some(cluster.path("other")));
    let said = cluster.ddbx(&["ps"]).refused(1);
    assert!(said.contains("different secrets"), "{said}");
    let stranger = cluster.walker("stranger");
    let complained = || Some(stranger.complained()).filter(|said| said.ends_with('\n'));
    let said = until("it says why", complained);
    assert!(said.contains("different secrets") && said.lines().count() == 1, "{said}");
    cluster.use_session(&address, Some(cluster.path("missing")));
    let said = cluster.ddbx(&["ps"]).refused(2);
    assert!(said.contains("missing cannot be read"), "{said}");

    cluster.use_session(&address, Some(cluster.path("secret")));
    assert_eq!(cluster.present(), Vec::<String>::new());
}

#[test]
fn over_tcp_only_with_a_secret_and_only_here() {
    let cluster = Cluster::new();
    let said = cluster.ddbx_plain(&["central", "--session", "tcp:127.0.0.1:0"]).refused(2);
    assert!(said.contains("--secret-file FILE"), "{said}");
    let words = ["central", "--session", "tcp:0.0.0.0:0", "--secret-file", "secret"];
    let said = cluster.ddbx_plain(&words).refused(2);
    assert!(said.contains("not a loopback address"), "{said}");
    assert!(said.contains("`ddbx certs DIR`") && said.contains("--tls DIR"), "{said}");
    // Where it goes is not sure before somebody looks its name up.
    let words = ["ps", "--session", "tcp:localhost:4000", "--secret-file", "secret"];
    let said = cluster.ddbx_plain(&words).refused(1);
    assert!(said.contains("not a loopback address"), "{said}");
}

#[test]
fn a_secret_is_never_on_a_command_line() {
    let cluster = Cluster::new();
    let (_central, address) = open_tcp(&cluster, "secret");
    let secret = fs::read_to_string(cluster.path("secret")).unwrap();
    for command in ["ps", "central"] {
        let words = [command, "--session", &address, "--secret-file", secret.trim_end()];
        let said = cluster.ddbx_plain(&words).refused(2);
        assert!(said.contains("other users can see it on a command line"), "{said}");
        assert!(!said.contains(secret.trim_end()), "{said}");
    }
    // Nor was it made a file.
    assert!(!cluster.path(secret.trim_end()).exists());
}

#[test]
fn two_sessions_do_not_see_each_other() {
    let mut cluster = Cluster::new();
    let _main = cluster.central();
    let _a = cluster.walker("a");
    let mut caller = cluster.caller("caller");
    cluster.until_present(&["a", "caller"]);
    cluster.use_session("other", None);
    let _other = cluster.central();
    let _b = cluster.walker_at("a", "b");
    cluster.until_present(&["a"]);
    cluster.set_break(&["*:*@arrive"]);
    caller.walk("free", 30_000, &[("a", 0)]);
    assert_eq!(caller.outcome("free").what, "ok");

    let said = cluster.ddbx_plain(&["ps"]).refused(2);
    assert_eq!(said, "2 sessions run: main, other; say which with --session main");
    let said = cluster.ddbx_plain(&["central", "--session", SESSION]).refused(1);
    assert_eq!(said, "session main runs already: end it first, or choose another name");
}

#[test]
fn what_a_killed_session_leaves_is_in_nobodys_way() {
    let (cluster, mut central) = Cluster::open();
    central.kill();
    assert!(cluster.path("run/ddbx/main.sock").exists());
    let said = cluster.ddbx_plain(&["ps"]).refused(4);
    assert!(said.starts_with("no session runs"), "{said}");
    let said = cluster.ddbx(&["ps"]).refused(4);
    assert!(said.starts_with("no session called main runs"), "{said}");

    let mut again = cluster.central();
    assert_eq!(cluster.present(), Vec::<String>::new());
    // The only one that runs is found, and leaves nothing when it is ended properly.
    cluster.ddbx_plain(&["stop"]).well();
    assert_eq!(again.end().code(), Some(0));
    assert!(!cluster.path("run/ddbx/main.sock").exists());
}
