//! How far the processes of a replay have come.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use ddbx_central::driver::Session;
use ddbx_central::logic::replay::{Judge, Run, Verdict};
use ddbx_protocol::ProcessName;
use ddbx_protocol::control::{ReplayView, Reply, Request};
use ddbx_recording::Recording;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::watch;

use super::{ReplayArgs, count, shown};
use crate::run::config::Config;

/// How often to look.
const LOOKS: Duration = Duration::from_millis(50);

/// The same after a process has exited, as long as [`LOOKS`]: mostly the replay is over with
/// that, as soon as all have heard of it.
const LOOKS_AFTER_EXIT: Duration = Duration::from_millis(5);

/// Follows a replay to its end.
pub(super) struct Following<'a> {
    recording: &'a Recording,
    /// Where those say their last word who exit.
    last_words: &'a Path,
    runs: Vec<Run>,
    judge: Judge,
    /// Those that the run starts: they may have to be built first.
    started: BTreeSet<&'a str>,
    began: Instant,
    ready_timeout: Duration,
    patience: Duration,
    last_hold: Instant,
    last_newcomer: Instant,
    has_said: bool,
    verdict: Option<Verdict>,
    events: Option<u64>,
    bar: Option<ProgressBar>,
}

impl<'a> Following<'a> {
    pub(super) fn new(
        args: &'a ReplayArgs,
        recording: &'a Recording,
        config: &'a Config,
        last_words: &'a Path,
        shows_progress: bool,
    ) -> Self {
        let runs = recording.runs();
        let started = config.processes.iter().flat_map(|process| &process.replicas);
        let now = Instant::now();
        Self {
            recording,
            last_words,
            judge: Judge::new(runs.clone(), args.patience),
            runs,
            started: started.map(|name| name.as_str()).collect(),
            began: now,
            ready_timeout: args.in_session.ready_timeout,
            patience: args.patience,
            last_hold: now,
            last_newcomer: now,
            has_said: false,
            verdict: None,
            events: None,
            bar: shows_progress.then(|| bar(count(recording))),
        }
    }

    /// Until all has happened again and who exited then has exited, or until that
    /// cannot come about.
    pub(super) async fn follow(
        &mut self,
        session: &Session,
        mut exited: watch::Receiver<BTreeSet<ProcessName>>,
    ) {
        let mut last_exit = None;
        while self.verdict.is_none() {
            let is_soon = last_exit.is_some_and(|exit: Instant| exit.elapsed() < LOOKS);
            let pause = if is_soon { LOOKS_AFTER_EXIT } else { LOOKS };
            let exit = async {
                if exited.changed().await.is_err() {
                    // Nobody is there any more to tell of others.
                    std::future::pending().await
                }
            };
            if tokio::time::timeout(pause, exit).await.is_ok() {
                last_exit = Some(Instant::now());
            }
            let verdict = self.look(session);
            self.verdict = (verdict != Verdict::GoesOn).then_some(verdict);
        }
        if self.verdict == Some(Verdict::Over)
            && let Some(seal) = self.recording.seal()
        {
            let all = |exited: &BTreeSet<_>| seal.exits.keys().all(|name| exited.contains(name));
            // A process that has left the session may still have to exit.
            let _ = tokio::time::timeout(self.patience, exited.wait_for(all)).await;
        }
    }

    /// What came of it.
    pub(super) fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// What came of it, when nothing can come any more.
    pub(super) fn last_word(&mut self, session: &Session) -> Verdict {
        if let Some(verdict) = self.verdict.take() {
            return verdict;
        }
        let views = self.views(session);
        match self.look(session) {
            Verdict::GoesOn => Verdict::Stalled(self.judge.missing(&views)),
            verdict => verdict,
        }
    }

    /// Nothing more is shown.
    pub(super) fn done(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// How many events were to happen again, if all processes have said how many they have.
    pub(super) fn events(&self) -> Option<u64> {
        self.events
    }

    fn look(&mut self, session: &Session) -> Verdict {
        let views = self.views(session);
        let of = |run: &Run| {
            let mut all = views.iter();
            all.find(|view| run.0.as_str() == view.process && run.1 == view.start)
        };
        self.events = self.runs.iter().map(|run| Some(of(run)?.progress.of)).sum();
        if let Some(bar) = &self.bar {
            bar.set_position(views.iter().map(|view| view.progress.done).sum());
        }
        let now = Instant::now();
        if is_held(session) {
            self.last_hold = now;
        }
        // Whoever is still to come may have to be built first.
        let has_come = |name: &str| views.iter().any(|view| view.process == name);
        let mut starting = self.runs.iter().map(|(name, _)| name.as_str());
        let awaited = starting.find(|name| self.started.contains(name) && !has_come(name));
        if let Some(name) = awaited
            && self.began.elapsed() < self.ready_timeout
        {
            self.last_newcomer = now;
            if !self.has_said && self.began.elapsed() > self.patience {
                self.has_said = true;
                anstream::eprintln!("ddbx: waiting for {name} to come");
            }
        }
        let since = self.last_hold.max(self.last_newcomer);
        self.judge.look(&views, since.elapsed())
    }

    /// What the processes say, or have left behind when they exited. One that exits at once
    /// has no time to say anything. Anything can be in a file: what is shown of it is of those
    /// who were recorded.
    fn views(&self, session: &Session) -> Vec<ReplayView> {
        let Some(Reply::Replay(mut views)) = session.request(Request::Replay) else {
            return Vec::new();
        };
        let is_known = |word: &ReplayView| {
            let is_it = |run: &Run| run.0.as_str() == word.process && run.1 == word.start;
            self.runs.iter().any(is_it)
        };
        for word in last_words(self.last_words).into_iter().filter(is_known) {
            let is_same =
                |view: &&mut ReplayView| (&view.process, view.start) == (&word.process, word.start);
            match views.iter_mut().find(is_same) {
                Some(view) if view.is_there => {}
                Some(view) => *view = word,
                None => views.push(word),
            }
        }
        views
    }
}

/// What those have said who have exited, in their order.
fn last_words(file: &Path) -> Vec<ReplayView> {
    let said = fs::read_to_string(file).unwrap_or_default();
    said.lines().map_while(|line| serde_json::from_str(line).ok()).collect()
}

fn is_held(session: &Session) -> bool {
    session.stops().iter().any(|(_, reason)| reason.is_users())
}

fn bar(events: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("replaying {bar:30} {pos}/{len} events");
    ProgressBar::new(events).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

impl std::fmt::Debug for Following<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "replay of {}", shown(self.recording.directory()))
    }
}
