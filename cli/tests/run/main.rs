//! The processes of `ddbx run`, with real ones: order, readiness, exit codes,
//! output, and that nothing is left behind.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpSocket;

use harness::{Run, code};

mod command;
mod harness;
mod output;
mod teardown;

#[tokio::test]
async fn a_process_starts_when_those_before_it_are_ready() {
    // The first gives the second time to come too early.
    let run = Run::new(
        "[[process]]
        name = 'second'
        after = ['first']
        sh = 'touch second; exit 0';;
        [[process]]
        name = 'first'
        ready = 'log:^up$'
        replicas = 2
        sh = 'for i in 1 2 3 4 5 6 7 8 9; do [ -e second ] && exit 9; sleep 0.02; done; printf \"\\033[32mup\\033[0m\\n\" >&2';;",
    );
    assert_eq!(run.end().await.unwrap(), code(0));
    let notes = run.notes.get();
    let place = |note: &str| notes.find(note).unwrap_or_else(|| panic!("{note} in {notes}"));
    assert!(place("first started") < place("first#2 started"));
    assert!(place("first is ready") < place("second started"));
    assert!(place("first#2 is ready") < place("second started"));
}

#[tokio::test]
async fn ready_and_gone_at_once_is_ready() {
    for _ in 0..20 {
        let run = Run::new("[[process]]\nname = 'a'\nready = 'log:up'\nsh = 'printf up';;");
        assert_eq!(run.end().await.unwrap(), code(0));
        assert!(run.notes.get().contains("a is ready"));
    }
}

#[tokio::test]
async fn a_port_makes_ready() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let run = Run::new(&format!(
        "[[process]]
        name = 'a'
        ready = 'tcp:{address}'
        sh = 'until [ -e go ]; do [ -e b ] && [ ! -e go ] && exit 9; sleep 0.02; done; until [ -e b ]; do sleep 0.02; done';;
        [[process]]
        name = 'b'
        after = ['a']
        sh = 'touch b';;"
    ));
    let listen = async {
        run.notes.after("a started").await;
        // Nobody listens at a port that is only bound.
        tokio::time::sleep(Duration::from_millis(100)).await;
        fs::write(run.file("go"), "").unwrap();
        socket.listen(1).unwrap()
    };
    let (outcome, _listener) = tokio::join!(run.end(), listen);
    assert_eq!(outcome.unwrap(), code(0));
}

#[tokio::test]
async fn attaching_makes_ready() {
    let run = Run::new(
        "[[process]]
        name = 'a'
        ready = 'attached'
        sh = 'until [ -e b ]; do sleep 0.02; done';;
        [[process]]
        name = 'b'
        after = ['a']
        sh = 'touch b';;",
    );
    let asked = AtomicUsize::new(0);
    let is_attached = |name: &str| {
        assert_eq!(name, "a");
        assert!(!run.file("b").exists());
        asked.fetch_add(1, Ordering::Relaxed) == 5
    };
    assert_eq!(run.end_when(is_attached).await.unwrap(), code(0));
    assert_eq!(asked.into_inner(), 6);
}

#[tokio::test]
async fn who_never_gets_ready_is_named() {
    // Nobody listens at a port that is only bound.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    for (ready, awaited) in [
        ("log:^up$".to_owned(), "a line that matches \"^up$\"".to_owned()),
        (format!("tcp:{address}"), format!("connections at {address}")),
        ("attached".to_owned(), "its satellite to attach".to_owned()),
    ] {
        let mut run = Run::new(&format!(
            "[[process]]\nname = 'a'\nready = '{ready}'\nsh = 'sleep 1000';;
            [[process]]\nname = 'b'\nafter = ['a']\nsh = 'touch b';;"
        ));
        run.options.ready_timeout = Duration::from_millis(300);
        let error = run.end().await.unwrap_err().to_string();
        assert_eq!(error, format!("a was not ready within 300ms: waited for {awaited}"));
        assert!(!run.file("b").exists());
        assert!(run.notes.get().contains("stopping a"));
    }
}

#[tokio::test]
async fn who_exits_before_it_is_ready_is_named() {
    for (script, end) in [
        ("exit 3", "exited with code 3"),
        ("exit 0", "exited with code 0"),
        ("kill -9 $$", "was ended by SIGKILL"),
    ] {
        let run = Run::new(&format!(
            "[[process]]\nname = 'a'\nready = 'log:up'\nsh = '{script}';;
            [[process]]\nname = 'b'\nsh = 'sleep 1000';;"
        ));
        let error = run.end().await.unwrap_err().to_string();
        assert_eq!(
            error,
            format!("a {end} before it was ready: waited for a line that matches \"up\"")
        );
        assert!(run.notes.get().contains("stopping b"));
    }
}

#[tokio::test]
async fn what_cannot_be_started_is_named() {
    let error = async |rest: &str| {
        let text = format!(
            "[[process]]\nname = 'b'\nsh = 'sleep 1000';;\n[[process]]\nname = 'a'\n{rest}"
        );
        Run::new(&text).end().await.unwrap_err().to_string()
    };
    assert!(
        error("command = ['no-such-program']")
            .await
            .starts_with("cannot start a: no-such-program: No such file")
    );
    let error = error("command = ['true']\ndir = 'nowhere'").await;
    assert!(error.starts_with("cannot start a: ") && error.ends_with("nowhere is not a directory"));
}

#[tokio::test]
async fn the_first_failure_ends_the_run() {
    for (script, expected) in [("exit 3", 3), ("kill -KILL $$", 137)] {
        let run = Run::new(&format!(
            "[[process]]\nname = 'good'\nsh = 'exit 0';;
            [[process]]\nname = 'server'\nsh = 'sleep 1000';;
            [[process]]\nname = 'bad'\nsh = '{script}';;"
        ));
        assert_eq!(run.end().await.unwrap(), code(expected));
        assert!(run.notes.get().contains("server was ended by SIGTERM"), "{}", run.notes.get());
    }
}

#[tokio::test]
async fn who_ends_the_run_decides() {
    for expected in [0, 4] {
        let run = Run::new(&format!(
            "[[process]]\nname = 'server'\nsh = 'sleep 1000';;
            [[process]]\nname = 'bad'\nsh = 'exit 7';;
            [[process]]\nname = 'test'\nends_run = true
            sh = 'until [ -e go ]; do sleep 0.02; done; exit {expected}';;"
        ));
        let let_go = async {
            run.notes.after("bad exited with code 7").await;
            fs::write(run.file("go"), "").unwrap();
        };
        let (outcome, ()) = tokio::join!(run.end(), let_go);
        assert_eq!(outcome.unwrap(), code(expected));
    }
}

#[tokio::test]
async fn each_process_knows_who_and_where_it_is() {
    let run = Run::new(
        "[[process]]
        name = 'a'
        replicas = 2
        dir = 'sub'
        env = { X = '1', DDBX_PROCESS = 'forged' }
        command = ['./show']",
    );
    fs::create_dir(run.file("sub")).unwrap();
    let show = run.file("sub/show");
    let script = "#!/bin/sh\ncat\necho $DDBX_PROCESS $DDBX_REPLICA $DDBX_SESSION $X ${PWD##*/}\n";
    write_program(&show, script);
    assert_eq!(run.end().await.unwrap(), code(0), "{}", run.lines.get());
    let lines = run.lines.get();
    let mut lines: Vec<_> = lines.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["a    | a 1 unix:socket 1 sub", "a#2  | a#2 2 unix:socket 1 sub"]);
}

/// Through a shell: a file that this process has open for writing while another
/// thread starts something cannot be executed.
fn write_program(path: &Path, script: &str) {
    let program = "printf %s \"$2\" > \"$1\" && chmod +x \"$1\"";
    let mut shell = std::process::Command::new("sh");
    let status = shell.args(["-c", program, "sh"]).arg(path).arg(script).status().unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn a_run_can_be_a_task() {
    let run = Run::new("[[process]]\nname = 'a'\nsh = 'exit 5';;");
    let outcome = tokio::spawn(async move { run.end().await.unwrap() });
    assert_eq!(outcome.await.unwrap(), code(5));
}
