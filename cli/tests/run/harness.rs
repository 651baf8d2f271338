//! Runs in directories of their own, whose output can be read while they run.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ddbx_cli::run::RunError;
use ddbx_cli::run::config::Config;
use ddbx_cli::run::output::{Sink, Sinks};
use ddbx_cli::run::supervisor::{Ended, Hooks, Options, Outcome, supervise};
use rustix::process::{Pid, test_kill_process};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

/// A machine may be slow, but not as slow as this.
pub const FOR_EVER: Duration = Duration::from_secs(120);

/// A run in a directory of its own.
pub struct Run {
    config: Config,
    folder: TempDir,
    pub lines: Text,
    pub notes: Text,
    pub options: Options,
    /// One permit for each time that the run is told to stop.
    stops: Semaphore,
}

impl Run {
    /// `processes` is TOML in which `sh = 'script';;` runs a script.
    pub fn new(processes: &str) -> Self {
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
            options: Options {
                headless: true,
                grace: FOR_EVER,
                ready_timeout: FOR_EVER,
                alarm: None,
                ..Options::default()
            },
            stops: Semaphore::new(0),
        }
    }

    pub async fn end(&self) -> Result<Outcome, RunError> {
        self.end_when(|_| false).await
    }

    pub async fn end_when(&self, is_attached: impl Fn(&str) -> bool) -> Result<Outcome, RunError> {
        self.end_with(self.lines.sink(), is_attached).await
    }

    pub async fn end_with(
        &self,
        lines: Sink,
        is_attached: impl Fn(&str) -> bool,
    ) -> Result<Outcome, RunError> {
        self.ended(lines, is_attached, async {}).await.outcome
    }

    /// All that is known of it.
    pub async fn ended(
        &self,
        lines: Sink,
        is_attached: impl Fn(&str) -> bool,
        before_teardown: impl Future<Output = ()>,
    ) -> Ended {
        let sinks = Sinks { lines, notes: self.notes.sink() };
        let environment = [("DDBX_SESSION".to_owned(), "unix:socket".to_owned())];
        let stop = || async { self.stops.acquire().await.map(SemaphorePermit::forget).unwrap() };
        let hooks = Hooks { is_attached, stop, before_teardown };
        let run = supervise(sinks, &self.config, &environment, hooks, &self.options);
        tokio::time::timeout(FOR_EVER, run).await.expect("the run ends")
    }

    pub fn tell_to_stop(&self) {
        self.stops.add_permits(1);
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Text that can be read while it is written.
#[derive(Clone, Default)]
pub struct Text(Arc<Mutex<Vec<u8>>>);

impl Text {
    pub fn sink(&self) -> Sink {
        Sink { writer: Box::new(self.clone()), colours: false }
    }

    pub fn get(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The rest of the first line that has `start` in it, once it is there.
    pub async fn after(&self, start: &str) -> String {
        loop {
            let text = self.get();
            let mut complete = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            if let Some((_, rest)) = complete.find_map(|line| line.split_once(start)) {
                return rest.trim_end().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn pid_after(&self, start: &str) -> Pid {
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
pub fn is_gone(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let is_dead =
        stat.is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|s| s.starts_with('Z')));
    is_dead || test_kill_process(pid).is_err()
}

pub async fn gone(pid: Pid) {
    let since = Instant::now();
    while !is_gone(pid) {
        assert!(since.elapsed() < FOR_EVER, "{pid:?} is still there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub fn code(code: u8) -> Outcome {
    Outcome { code, stopped: false }
}
