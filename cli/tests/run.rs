//! The processes of `ddbx run`, with real ones: order, readiness, exit codes,
//! output, and that nothing is left behind.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use ddbx_cli::run::RunError;
use ddbx_cli::run::config::Config;
use ddbx_cli::run::output::{Sink, Sinks};
use ddbx_cli::run::supervisor::{Options, Outcome, supervise_to};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::sync::{Semaphore, SemaphorePermit};

/// A machine may be slow, but not as slow as this.
const FOR_EVER: Duration = Duration::from_secs(120);

/// A run in a directory of its own.
struct Run {
    config: Config,
    folder: TempDir,
    lines: Text,
    notes: Text,
    options: Options,
    /// One permit for each time that the run is told to stop.
    stops: Semaphore,
}

impl Run {
    /// `processes` is TOML; `sh` in it stands for the beginning of a command.
    fn new(processes: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ddbx.toml");
        fs::write(&path, processes.replace("sh = ", "command = ['sh', '-c', ").replace(";;", "]"))
            .unwrap();
        Self {
            config: Config::read(&path).unwrap(),
            folder,
            lines: Text::default(),
            notes: Text::default(),
            // Whoever needs them short says so.
            options: Options { headless: true, grace: FOR_EVER, ready_timeout: FOR_EVER },
            stops: Semaphore::new(0),
        }
    }

    async fn end(&self) -> Result<Outcome, RunError> {
        self.end_when(|_| false).await
    }

    async fn end_when(&self, is_attached: impl Fn(&str) -> bool) -> Result<Outcome, RunError> {
        self.end_with(self.lines.sink(), is_attached).await
    }

    async fn end_with(
        &self,
        lines: Sink,
        is_attached: impl Fn(&str) -> bool,
    ) -> Result<Outcome, RunError> {
        let sinks = Sinks { lines, notes: self.notes.sink() };
        let environment = [("DDBX_SESSION".to_owned(), "unix:socket".to_owned())];
        let stop = || async { self.stops.acquire().await.map(SemaphorePermit::forget).unwrap() };
        let run = supervise_to(sinks, &self.config, &environment, is_attached, stop, &self.options);
        tokio::time::timeout(FOR_EVER, run).await.expect("the run ends")
    }

    fn tell_to_stop(&self) {
        self.stops.add_permits(1);
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }
}

/// Text that can be read while it is written.
#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Text {
    fn sink(&self) -> Sink {
        Sink { writer: Box::new(self.clone()), colours: false }
    }

    fn get(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The rest of the first line that has `start` in it, once it is there.
    async fn after(&self, start: &str) -> String {
        loop {
            let text = self.get();
            let mut complete = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            if let Some((_, rest)) = complete.find_map(|line| line.split_once(start)) {
                return rest.trim_end().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn pid_after(&self, start: &str) -> Pid {
        Pid::from_raw(self.after(start).await.parse().unwrap()).unwrap()
    }
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Nobody may have fetched its exit status yet, but it does not run.
fn is_gone(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let is_dead =
        stat.is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|s| s.starts_with('Z')));
    is_dead || test_kill_process(pid).is_err()
}

async fn gone(pid: Pid) {
    let since = Instant::now();
    while !is_gone(pid) {
        assert!(since.elapsed() < FOR_EVER, "{pid:?} is still there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn code(code: u8) -> Outcome {
    Outcome { code, stopped: false }
}

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
    let run = Run::new("[[process]]\nname = 'a'\nsh = 'sleep 1000 & echo grandchild $!';;");
    assert_eq!(run.end().await.unwrap(), code(0));
    gone(run.lines.pid_after("grandchild ").await).await;
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

#[tokio::test]
async fn a_run_can_be_a_task() {
    let run = Run::new("[[process]]\nname = 'a'\nsh = 'exit 5';;");
    let outcome = tokio::spawn(async move { run.end().await.unwrap() });
    assert_eq!(outcome.await.unwrap(), code(5));
}
