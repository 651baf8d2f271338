//! What the processes print, whatever becomes of the place where it goes.

use std::fs;
use std::io::{self, Write};
use std::sync::mpsc;
use std::time::Duration;

use ddbx_cli::run::RunError;
use ddbx_cli::run::output::Sink;
use ddbx_cli::run::supervisor::Outcome;
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Run, code, gone, is_gone};

#[tokio::test]
async fn output_is_lines_of_text() {
    let run = Run::new(
        r#"[[process]]
        name = "inventory"
        command = ["printf", 'one\r\n\033[2J\033[31mtwo\033[0m\n\377\nhalf\033[']
        [[process]]
        name = "web"
        command = ["sh", "-c", "echo err >&2; printf 'half err' >&2"]"#,
    );
    assert_eq!(run.end().await.unwrap(), code(0));
    let lines = run.lines.get();
    let of =
        |name: &str| -> Vec<_> { lines.lines().filter_map(|l| l.strip_prefix(name)).collect() };
    assert_eq!(of("inventory | "), ["one", "two", "\u{fffd}", "half"]);
    assert_eq!(of("web       | "), ["err", "half err"]);
    assert_eq!(lines.lines().count(), 6);
}

#[tokio::test]
async fn all_output_is_there_at_the_end() {
    let run = Run::new("[[process]]\nname = 'a'\nsh = 'seq 1 200000';;");
    assert_eq!(run.end().await.unwrap(), code(0));
    let expected: String = (1..=200_000).map(|n| format!("a    | {n}\n")).collect();
    assert!(run.lines.get() == expected);
}

#[tokio::test]
async fn the_last_words_of_who_is_stopped_are_printed() {
    let run = Run::new(
        "[[process]]\nname = 'a'
        sh = 'exec 2>/dev/null; trap \"echo bye; printf bye; exit 0\" TERM; echo up; while :; do sleep 0.02; done';;",
    );
    let stop = async {
        run.lines.after("up").await;
        run.tell_to_stop();
    };
    let (outcome, ()) = tokio::join!(run.end(), stop);
    assert_eq!(outcome.unwrap(), Outcome { code: 0, stopped: true });
    assert_eq!(run.lines.get(), "a    | up\na    | bye\na    | bye\n");
}

/// As a terminal after ctrl-s, or a pager that nobody turns.
#[tokio::test]
async fn an_output_that_blocks_keeps_nobody_alive() {
    struct Blocked(mpsc::Receiver<()>);
    impl Write for Blocked {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Until the other end is dropped.
            let _ = self.0.recv();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (unblock, blocked) = mpsc::channel();
    let lines = Sink { writer: Box::new(Blocked(blocked)), colours: false };
    let run = Run::new("[[process]]\nname = 'a'\nsh = 'echo $$ > new; mv new pid; exec yes';;");
    let stop = async {
        while !run.file("pid").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for _ in 0..3 {
            run.tell_to_stop();
        }
    };
    let (outcome, ()) = tokio::join!(run.end_with(lines, |_| false), stop);
    assert_eq!(outcome.unwrap(), Outcome { code: 0, stopped: true });
    let pid = fs::read_to_string(run.file("pid")).unwrap().trim().parse().unwrap();
    gone(Pid::from_raw(pid).unwrap()).await;
    drop(unblock);
}

#[tokio::test]
async fn an_output_that_is_gone_ends_the_run() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let lines = Sink { writer: Box::new(Gone), colours: false };
    let run = Run::new("[[process]]\nname = 'a'\nsh = 'exec yes';;");
    let error = run.end_with(lines, |_| false).await.unwrap_err();
    assert!(matches!(error, RunError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe));
}

/// Somebody in a session of its own is out of reach, but keeps the pipe open.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn who_keeps_the_output_open_delays_nobody() {
    let run = Run::new(
        "[[process]]\nname = 'a'
        sh = 'setsid sh -c \"echo escaped \\$\\$; exec sleep 1000\" & until [ -e go ]; do sleep 0.02; done';;",
    );
    let let_go = async {
        let pid = run.lines.pid_after("escaped ").await;
        fs::write(run.file("go"), "").unwrap();
        pid
    };
    let (outcome, escaped) = tokio::join!(run.end(), let_go);
    let escaped_lived = !is_gone(escaped);
    kill_process(escaped, Signal::KILL).unwrap();
    assert_eq!(outcome.unwrap(), code(0));
    assert!(escaped_lived);
}
