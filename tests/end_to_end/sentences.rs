//! What goes wrong is said in a sentence, with what to do next and the right exit code.

use std::fs;

use ddbx_tests::waiting::until;
use rustix::process::Signal;

use crate::cluster::Cluster;

/// Every command that talks to a session.
const COMMANDS: [&[&str]; 18] = [
    &["ps"],
    &["break", "a:Walker.walk@arrive"],
    &["breaks"],
    &["delete", "1"],
    &["delete", "--all"],
    &["wait", "--hit", "1", "--timeout", "30s"],
    &["holds"],
    &["bt", "1"],
    &["continue"],
    &["continue", "1"],
    &["continue", "a"],
    &["continue", "--all"],
    &["release", "1"],
    &["pause", "a"],
    &["panic"],
    &["watch"],
    &["events"],
    &["stop"],
];

fn all_refuse(cluster: &Cluster, session: &[&str], code: i32, sentence: &str) {
    for command in COMMANDS {
        let said = cluster.ddbx_plain(&[command, session].concat()).refused(code);
        assert_eq!(said, sentence, "{command:?}");
    }
}

const START_ONE: &str =
    "start one with `ddbx run`, or with `ddbx central` and your services by hand";

#[test]
fn no_session() {
    let cluster = Cluster::new();
    all_refuse(&cluster, &[], 4, &format!("no session runs: {START_ONE}"));
    let sentence = format!("no session called shop runs: {START_ONE}");
    all_refuse(&cluster, &["--session", "shop"], 4, &sentence);
}

#[test]
fn a_wrong_session() {
    let mut cluster = Cluster::new();
    let mut dies = cluster.central();
    cluster.use_session("other", None);
    let _other = cluster.central();
    cluster.use_session("third", None);
    let _third = cluster.central();
    dies.kill();
    let sentence =
        "no session called main runs: those that run: other, third; --session says which";
    all_refuse(&cluster, &["--session", "main"], 4, sentence);
    let sentence = "2 sessions run: other, third; say which with --session other";
    all_refuse(&cluster, &[], 2, sentence);
    let sentence = "a session name cannot contain ' '; an address is the name of a session, \
                    unix:PATH or tcp:IP:PORT";
    all_refuse(&cluster, &["--session", "a b"], 2, sentence);
}

#[test]
fn a_session_that_hangs_or_ends() {
    let (cluster, mut central) = Cluster::open();
    let breakpoint = cluster.set_break(&["a:Walker.walk@arrive"]);
    let mut follows = cluster.start_ddbx(&["events", "--follow"]);
    follows.line(|line| line.contains("breakpoint 1"));
    central.signal(Signal::STOP);
    let said = cluster.ddbx(&["ps"]).refused(4);
    assert!(said.contains("did not finish its handshake within 5 s: is it stopped"), "{said}");
    central.signal(Signal::CONT);
    cluster.ddbx(&["ps"]).well();
    assert!(follows.is_running());

    let mut waits = cluster.start_ddbx(&["wait", "--hit", &breakpoint]);
    // So that it has most likely come to its wait: what it says is right in any case.
    cluster.ddbx(&["ps"]).well();
    cluster.ddbx(&["stop"]).well();
    assert_eq!(central.end().code(), Some(0));
    // Whoever follows has seen all there was; who waits did not get what it waited for.
    assert_eq!(follows.end().code(), Some(0));
    assert_eq!(waits.end().code(), Some(4));
    let why = ["the session has ended", "no session called main runs"];
    let said = why.map(|why| format!("error: {why}: {START_ONE}\n"));
    until("it says so", || said.contains(&waits.complained()).then_some(()));
}

#[test]
fn places_that_cannot_be_trusted() {
    let cluster = Cluster::new();
    let open = cluster.path("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let address = format!("unix:{}/x.sock", open.display());
    let said = cluster.ddbx_plain(&["ps", "--session", &address]).refused(1);
    assert!(said.contains("is open to other users (mode 755): chmod 700 it"), "{said}");
    let said = cluster.ddbx_plain(&["central", "--session", &address]).refused(1);
    assert!(said.contains("is open to other users (mode 755): chmod 700 it"), "{said}");
    fs::write(cluster.path("run/file"), "").unwrap();
    let address = format!("unix:{}", cluster.path("run/file").display());
    let said = cluster.ddbx_plain(&["central", "--session", &address]).refused(1);
    assert!(said.contains("is there already and is no socket"), "{said}");
}

#[test]
fn nobody_is_there() {
    let (cluster, _central) = Cluster::open();
    let says = |words: &[&str], code: i32, what: &str| {
        let done = cluster.ddbx(words);
        assert_eq!(done.code, code, "{words:?}: {done:?}");
        assert!(format!("{}{}", done.out, done.err).contains(what), "{words:?}: {done:?}");
    };
    says(&["ps"], 0, "nobody takes part yet: start your services with DDBX_SESSION");
    says(&["panic"], 0, "nobody takes part yet: start your services with DDBX_SESSION");
    says(&["breaks"], 0, "no breakpoints: set one with `ddbx break");
    says(&["holds"], 0, "nobody stands still");
    says(&["watch"], 0, "nothing is watched: show values with ddbx::watch!");
    says(&["continue"], 1, "nobody is held: set a breakpoint with `ddbx break`");
    says(&["continue", "--all"], 0, "nobody was held");
    says(&["continue", "7"], 1, "nobody stands as hold 7 now; `ddbx holds` lists who does");
    says(&["bt", "7"], 1, "nobody stands as hold 7 now; `ddbx holds` lists who does");
    says(&["release", "7"], 1, "nobody stands as hold 7 now; `ddbx holds` lists who does");
    says(&["delete", "7"], 1, "there is no breakpoint 7; `ddbx breaks` lists them");
    says(&["pause", "a"], 1, "no process \"a\" takes part, nor any other: start your services");
    let _a = cluster.walker("a");
    cluster.until_present(&["a"]);
    says(&["pause", "b"], 1, "no process \"b\" takes part; there is a");
    says(&["continue", "b"], 1, "no process \"b\" takes part; there is a");
}

#[test]
fn bad_input_is_marked() {
    // No session is needed to see that.
    let cluster = Cluster::new();
    let said = cluster.ddbx_plain(&["break", "a:Shop.buy@sell"]).refused(2);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[0], "the events are call, arrive, return and resume, or * for all");
    assert_eq!(lines[1..], ["  a:Shop.buy@sell", "             ^"]);
    let said = cluster.ddbx_plain(&["break", "a:B.c@call", "--if", "args.x =="]).refused(2);
    assert_eq!(said.lines().filter(|line| line.trim() == "^").count(), 1, "{said}");
    for words in [
        ["break", "a:B.c@call", "--for", "soon"].as_slice(),
        &["wait", "--hit", "1", "--timeout", "5"],
        &["wait", "--hit", "one"],
        &["delete"],
        &["pause"],
        &["continue", "1", "--all"],
        &["brake", "a:B.c@call"],
    ] {
        let done = cluster.ddbx_plain(words);
        assert_eq!(done.code, 2, "{words:?}: {done:?}");
        assert!(done.err.starts_with("error: ") && done.out.is_empty(), "{words:?}: {done:?}");
    }
}
