//! The end of a run: nothing is left behind, however it ends.

use std::fs;
use std::time::{Duration, Instant};

use ddbx_cli::run::supervisor::Outcome;

use crate::harness::{Run, code, gone, is_gone};

#[tokio::test]
async fn stopping_is_no_failure_unless_somebody_was_to_decide() {
    for (ends_run, expected) in [(false, 0), (true, 143)] {
        let run = Run::new(&format!(
            "[[process]]\nname = 'first'\nsh = 'exec sleep 1000';;
            [[process]]\nname = 'last'\nends_run = {ends_run}\nsh = 'echo up; exec sleep 1000';;"
        ));
        let stop = async {
            run.lines.after("up").await;
            run.tell_to_stop();
        };
        let (outcome, ()) = tokio::join!(run.end(), stop);
        assert_eq!(outcome.unwrap(), Outcome { code: expected, stopped: true });
        assert!(run.notes.get().contains("stopping last, first"), "{}", run.notes.get());
    }
}

#[tokio::test]
async fn nobody_is_asked_to_end_before_what_comes_before_that() {
    let run = Run::new(
        "[[process]]\nname = 'server'\nready = 'log:up'
        sh = 'exec 2>/dev/null; trap \"echo asked; exit 0\" TERM; echo up; while :; do sleep 0.02; done';;
        [[process]]\nname = 'test'\nafter = ['server']\nends_run = true\nsh = 'exit 3';;",
    );
    let before = async {
        run.notes.after("test exited with code 3").await;
        // Time to come too early.
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!run.notes.get().contains("stopping"), "{}", run.notes.get());
        assert_eq!(run.lines.get(), "server | up\n");
    };
    let ended = run.ended(run.lines.sink(), |_| false, before).await;
    assert_eq!(ended.outcome.unwrap(), code(3));
    assert_eq!(run.lines.get(), "server | up\nserver | asked\n");
    // The server did not exit by itself.
    let exits: Vec<_> = ended.exits.iter().map(|(name, exit)| (name.as_str(), exit.code)).collect();
    assert_eq!(exits, [("test", 3)]);
}

#[tokio::test]
async fn what_comes_before_the_end_and_never_ends_keeps_nobody_alive() {
    let run = Run::new(
        "[[process]]\nname = 'server'\nsh = 'exec sleep 1000';;
        [[process]]\nname = 'test'\nends_run = true\nsh = 'exit 0';;",
    );
    let ended = run.ended(run.lines.sink(), |_| false, std::future::pending()).await;
    assert_eq!(ended.outcome.unwrap(), code(0));
    assert!(run.notes.get().contains("server was ended by SIGTERM"), "{}", run.notes.get());
}

const WITH_GRANDCHILD: &str =
    "[[process]]\nname = 'a'\nsh = 'sleep 1000 & echo grandchild $!; echo child $$; wait';;";

#[tokio::test]
async fn grandchildren_do_not_survive() {
    let run = Run::new(WITH_GRANDCHILD);
    let stop = async {
        let pids = (run.lines.pid_after("grandchild ").await, run.lines.pid_after(" child ").await);
        assert!(!is_gone(pids.0) && !is_gone(pids.1));
        run.tell_to_stop();
        pids
    };
    let (outcome, (grandchild, child)) = tokio::join!(run.end(), stop);
    assert_eq!(outcome.unwrap(), Outcome { code: 0, stopped: true });
    gone(grandchild).await;
    gone(child).await;
}

#[tokio::test]
async fn what_a_process_leaves_behind_ends_with_it() {
    let run = Run::new(
        "[[process]]\nname = 'a'\nsh = 'sleep 1000 & echo grandchild $!';;
        [[process]]\nname = 'b'\nsh = 'until [ -e go ]; do sleep 0.02; done';;",
    );
    let let_go = async {
        gone(run.lines.pid_after("grandchild ").await).await;
        fs::write(run.file("go"), "").unwrap();
    };
    let (outcome, ()) = tokio::join!(run.end(), let_go);
    assert_eq!(outcome.unwrap(), code(0));
}

#[tokio::test]
async fn grandchildren_have_time_to_end_too() {
    // The shell in front ends as soon as it is asked to.
    let run = Run::new(
        "[[process]]\nname = 'a'
        sh = '(trap \"sleep 0.2; echo bye; exit\" TERM; echo up; while :; do sleep 0.02; done) & wait';;",
    );
    let stop = async {
        run.lines.after("up").await;
        run.tell_to_stop();
    };
    let (outcome, ()) = tokio::join!(run.end(), stop);
    assert_eq!(outcome.unwrap(), Outcome { code: 0, stopped: true });
    assert!(run.lines.get().ends_with("a    | bye\n"), "{}", run.lines.get());
}

#[tokio::test]
async fn a_run_that_is_dropped_leaves_nothing_behind() {
    let run = Run::new(WITH_GRANDCHILD);
    let grandchild = tokio::select! {
        outcome = run.end() => panic!("{outcome:?}"),
        pid = run.lines.pid_after("grandchild ") => pid,
    };
    gone(grandchild).await;
}

const STUBBORN: &str = "[[process]]\nname = 'a'
    sh = 'trap \"\" TERM; sleep 1000 & echo grandchild $!; echo up; while :; do wait; done';;";

#[tokio::test]
async fn who_does_not_stop_in_time_is_killed() {
    let mut run = Run::new(STUBBORN);
    run.options.grace = Duration::from_millis(300);
    let stop = async {
        run.lines.after("up").await;
        run.tell_to_stop();
        Instant::now()
    };
    let (outcome, told) = tokio::join!(run.end(), stop);
    assert_eq!(outcome.unwrap(), Outcome { code: 0, stopped: true });
    assert!(told.elapsed() >= run.options.grace);
    assert!(run.notes.get().contains("did not stop in time: killing a\n"));
    assert!(run.notes.get().contains("a was ended by SIGKILL"));
    gone(run.lines.pid_after("grandchild ").await).await;
}

#[tokio::test]
async fn told_twice_means_at_once() {
    let run = Run::new(STUBBORN);
    let stop = async {
        run.lines.after("up").await;
        run.tell_to_stop();
        run.notes.after("stopping a").await;
        run.tell_to_stop();
    };
    let (outcome, ()) = tokio::join!(run.end(), stop);
    assert_eq!(outcome.unwrap(), Outcome { code: 0, stopped: true });
    assert!(run.notes.get().contains("told to stop again: killing a\n"));
}
