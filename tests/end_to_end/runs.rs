//! `ddbx run`: everything starts together, and nothing is left when it ends.

use std::fs;

use ddbx_tests::waiting::until;
use rustix::process::Signal;
use serde_json::json;

use crate::cluster::Cluster;
use crate::process::Process;
use crate::walks::walk;

/// A file with two services and what else a test wants.
fn write_file(cluster: &Cluster, more: &str) {
    let dir = cluster.dir().to_str().unwrap();
    let actor = env!("CARGO_BIN_EXE_actor");
    let service = |name: &str| {
        let command = json!([actor, "walker", name, dir]);
        format!("[[process]]\nname = '{name}'\ncommand = {command}\nready = 'attached'\n")
    };
    let text = format!("session = 'main'\n{}{}{more}", service("a"), service("b"));
    fs::write(cluster.path("ddbx.toml"), text).unwrap();
}

/// A process that makes a walk and ends.
fn walks_once(cluster: &Cluster, name: &str, steps: &[(&str, u64)]) -> String {
    let dir = cluster.dir().to_str().unwrap();
    let walk = walk(name, 1_000, steps);
    let command =
        json!([env!("CARGO_BIN_EXE_actor"), "walker", "caller", dir, "--once", walk]).to_string();
    format!("[[process]]\nname = 'caller'\ncommand = {command}\nafter = ['a', 'b']\n")
}

fn start(cluster: &Cluster) -> Process {
    let run = Process::start(&mut cluster.ddbx_command(&["run", "--headless"]));
    until("the session is open", || {
        run.complained().contains("session main is open").then_some(())
    });
    run
}

fn nothing_is_left(cluster: &Cluster) {
    assert_eq!(cluster.left_over(), []);
    let said = cluster.ddbx(&["ps"]).refused(4);
    assert!(said.starts_with("no session called main runs"), "{said}");
}

#[test]
fn ctrl_c_ends_all_and_holds_nobody() {
    let cluster = Cluster::new();
    write_file(&cluster, "");
    let mut run = start(&cluster);
    cluster.until_present(&["a", "b"]);
    // This one is no part of the run: it must not stay held.
    let mut caller = cluster.caller("caller");
    let mut _c = cluster.walker("c");
    caller.warm_up(&["c"]);
    let breakpoint = cluster.set_break(&["c:Walker.walk@arrive"]);
    caller.walk("held", 1_000, &[("c", 0)]);
    cluster.hit(&breakpoint);

    run.signal(Signal::INT);
    assert_eq!(run.end().code(), Some(0));
    assert_eq!(caller.outcome("held").what, "ok");
    caller.0.close_stdin();
    caller.0.end();
    _c.close_stdin();
    _c.end();
    nothing_is_left(&cluster);
}

#[test]
fn ctrl_c_before_who_decides_has_ended_is_130() {
    let cluster = Cluster::new();
    let caller = walks_once(&cluster, "held", &[("a", 0), ("b", 0)]) + "ends_run = true\n";
    write_file(&cluster, &caller);
    let mut run = start(&cluster);
    // It stands at a breakpoint, and is ended all the same.
    let breakpoint = cluster.set_break(&["a:Walker.walk@arrive"]);
    cluster.hit(&breakpoint);
    run.signal(Signal::INT);
    let code = run.end().code();
    // 143 if it was ended by the polite signal, which it does not handle.
    assert!(matches!(code, Some(130 | 143)), "{code:?}");
    nothing_is_left(&cluster);
}

#[test]
fn stop_ends_a_run() {
    let cluster = Cluster::new();
    write_file(&cluster, "");
    let mut run = start(&cluster);
    cluster.until_present(&["a", "b"]);
    assert_eq!(cluster.ddbx(&["stop"]).well(), "the session ends\n");
    assert_eq!(run.end().code(), Some(0));
    nothing_is_left(&cluster);
}

#[test]
fn a_run_ends_with_the_code_of_who_decides() {
    let cluster = Cluster::new();
    let caller = walks_once(&cluster, "walk", &[("a", 0), ("b", 0)]) + "ends_run = true\n";
    write_file(&cluster, &caller);
    let mut run = start(&cluster);
    assert_eq!(run.end().code(), Some(0), "{}", run.complained());
    assert!(run.printed().contains("\"outcome\":\"ok\""), "{}", run.printed());
    nothing_is_left(&cluster);

    let decides = "[[process]]\nname = 'decides'\ncommand = ['sh', '-c', 'exit 7']\nends_run = true\nafter = ['a']\n";
    write_file(&cluster, decides);
    assert_eq!(start(&cluster).end().code(), Some(7));
    nothing_is_left(&cluster);
}

#[test]
fn a_process_that_fails_ends_the_run() {
    let cluster = Cluster::new();
    write_file(
        &cluster,
        "[[process]]\nname = 'fails'\ncommand = ['sh', '-c', 'exit 3']\nafter = ['a', 'b']\n",
    );
    assert_eq!(start(&cluster).end().code(), Some(3));
    nothing_is_left(&cluster);
}

#[test]
fn a_run_that_cannot_be_says_why() {
    let cluster = Cluster::new();
    let said = cluster.ddbx_plain(&["run"]).refused(2);
    assert!(said.contains("ddbx.toml"), "{said}");
    fs::write(cluster.path("ddbx.toml"), "[[process]]\nname = 'a'\n").unwrap();
    let said = cluster.ddbx_plain(&["run"]).refused(2);
    assert!(said.contains("command"), "{said}");
    fs::write(cluster.path("ddbx.toml"), "[[process]]\nname = 'a'\ncommand = ['./no-such']\n")
        .unwrap();
    let done = cluster.ddbx_plain(&["run", "--session", "main"]);
    assert!(done.code == 1 && done.err.contains("cannot start a: ./no-such"), "{done:?}");
}
