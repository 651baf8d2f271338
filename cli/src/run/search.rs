//! `ddbx run --until-fails`: the same run with other delays, until one fails.

use std::fs::{self, File};
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use ddbx_protocol::SessionName;
use humantime::format_rfc3339_seconds;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::alarm::Alarm;
use super::once::{Runner, Variant};
use super::output::{Sink, Sinks};
use super::supervisor::{Ended, INTERRUPTED, Outcome};
use super::{RunArgs, RunError, directory_name};
use crate::exit::Failure;
use crate::session::{print, print_json};
use crate::text;

/// Below the current directory, unless --record says where.
const DIRECTORY: &str = "ddbx-recordings";

/// The first seed, unless --perturb gives one.
const FIRST_SEED: u64 = 1;

/// Without a terminal, one line for so many runs.
const RUNS_PER_LINE: u32 = 10;

/// What a search has found.
#[derive(Serialize)]
struct Report {
    /// How many runs came to their end.
    runs: u32,
    /// The first that failed.
    failed: Option<Failed>,
    #[serde(skip)]
    is_stopped: bool,
}

#[derive(Serialize)]
struct Failed {
    seed: u64,
    why: String,
    recording: PathBuf,
}

/// Runs until a run fails, all have gone well, or it is told to stop.
pub(super) fn run(runner: &Runner<'_>) -> Result<ExitCode, Failure> {
    let args = runner.args;
    let directory = match &args.record {
        Some(directory) => directory.clone(),
        None => default_directory(runner),
    };
    // Runs of an earlier search would be in the way of this one.
    if fs::read_dir(&directory).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::BadInput(format!(
            "{} is not empty: record into a new directory",
            directory.display()
        )));
    }
    let report = search(runner, &directory)?;
    if args.record.is_none() && report.failed.is_none() {
        // As nothing is in it; what else is in the one above is not ours.
        let _ = fs::remove_dir(&directory).and_then(|()| fs::remove_dir(DIRECTORY));
    }
    if args.json {
        print_json(&report)?;
    } else {
        print(&text::escaped(&report.sentence()))?;
    }
    Ok(match report {
        Report { failed: Some(_), .. } => ExitCode::FAILURE,
        Report { is_stopped: true, .. } => INTERRUPTED.into(),
        Report { .. } => ExitCode::SUCCESS,
    })
}

fn default_directory(runner: &Runner<'_>) -> PathBuf {
    let session = match SessionName::new(&runner.session) {
        Ok(name) => name.to_string(),
        Err(_) => directory_name(&runner.args.file),
    };
    let now = format_rfc3339_seconds(SystemTime::now()).to_string().replace(':', "-");
    Path::new(DIRECTORY).join(format!("{session}-{now}"))
}

fn search(runner: &Runner<'_>, directory: &Path) -> Result<Report, Failure> {
    let args = runner.args;
    let runs = args.runs.get();
    let first = args.perturb.unwrap_or(FIRST_SEED);
    let progress = Progress::new(args, directory);
    let patterns: Vec<_> = [Alarm::panics()].into_iter().chain(args.fail_on.clone()).collect();
    for done in 0..runs {
        if runner.stops.is_told() {
            return Ok(Report { runs: done, failed: None, is_stopped: true });
        }
        let seed = first.wrapping_add(done.into());
        progress.begins(done, seed);
        let recording = directory.join(format!("run-{seed}"));
        let mut output = Output::new(args)?;
        let alarm = Arc::new(Alarm::on(patterns.clone()));
        let ended = runner.once(Variant {
            sinks: output.sinks()?,
            shown: None,
            seed: Some(seed),
            record: Some(&recording),
            alarm: Some(alarm.clone()),
            is_announced: false,
        })?;
        let verdict = verdict(ended, &alarm);
        if let Ok(Verdict::Failed(why)) = verdict {
            progress.end();
            output.show(args.json)?;
            let failed = Some(Failed { seed, why, recording });
            return Ok(Report { runs: done + 1, failed, is_stopped: false });
        }
        fs::remove_dir_all(&recording).map_err(|error| {
            let recording = recording.display();
            Failure::Failed(format!("cannot remove {recording}, of a good run: {error}"))
        })?;
        if let Verdict::Stopped = verdict? {
            return Ok(Report { runs: done, failed: None, is_stopped: true });
        }
    }
    Ok(Report { runs, failed: None, is_stopped: false })
}

enum Verdict {
    Good,
    Failed(String),
    Stopped,
}

/// An error is one that no other seed would change.
fn verdict(ended: Ended, alarm: &Alarm) -> Result<Verdict, Failure> {
    if let Some(line) = alarm.first() {
        return Ok(Verdict::Failed(line.to_string()));
    }
    match ended.outcome {
        Ok(Outcome { stopped: true, .. }) => Ok(Verdict::Stopped),
        Ok(Outcome { code: 0, .. }) => Ok(Verdict::Good),
        Ok(Outcome { code, .. }) => Ok(Verdict::Failed(match ended.exits.last() {
            Some((process, exit)) => format!("{process} {}", exit.text),
            None => format!("it ended with code {code}"),
        })),
        Err(why @ (RunError::NotReady { .. } | RunError::ExitedEarly { .. })) => {
            Ok(Verdict::Failed(why.to_string()))
        }
        Err(why) => Err(why.into()),
    }
}

impl Report {
    fn sentence(&self) -> String {
        let Self { runs, .. } = self;
        match &self.failed {
            Some(Failed { seed, why, recording }) => {
                let recording = recording.display();
                format!(
                    "run {runs} (seed {seed}) failed: {why}; recorded into {recording}; repeat \
                     it with `ddbx replay {recording}`"
                )
            }
            None if self.is_stopped => format!("stopped: no failure in {}", count(*runs)),
            None => format!("no failure in {}", count(*runs)),
        }
    }
}

fn count(runs: u32) -> String {
    if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") }
}

/// What one run prints. Nobody sees it unless the run fails.
struct Output {
    file: File,
    colours: bool,
}

impl Output {
    fn new(args: &RunArgs) -> io::Result<Self> {
        let Sinks { lines, notes } = Sinks::stdio(args.in_session.headless);
        let colours = if args.json { notes.colours } else { lines.colours };
        Ok(Self { file: tempfile::tempfile()?, colours })
    }

    /// Both write behind what the other has written.
    fn sinks(&self) -> io::Result<Sinks> {
        let sink = || {
            let writer = Box::new(self.file.try_clone()?);
            io::Result::Ok(Sink { writer, colours: self.colours })
        };
        Ok(Sinks { lines: sink()?, notes: sink()? })
    }

    /// Standard output is for the JSON if there is any.
    fn show(&mut self, to_stderr: bool) -> io::Result<()> {
        self.file.rewind()?;
        if to_stderr {
            // Nobody can be told that nobody can be told.
            let _ = io::copy(&mut self.file, &mut io::stderr());
            return Ok(());
        }
        io::copy(&mut self.file, &mut io::stdout()).map(drop)
    }
}

/// How far the search is: a bar on a terminal, else a line from time to time.
struct Progress {
    bar: ProgressBar,
}

impl Progress {
    fn new(args: &RunArgs, directory: &Path) -> Self {
        let directory = text::escaped(&directory.display().to_string());
        anstream::eprintln!("ddbx: up to {}, recorded into {directory}", count(args.runs.get()));
        let bar = match args.in_session.headless {
            true => ProgressBar::hidden(),
            false => ProgressBar::new(args.runs.get().into()),
        };
        if let Ok(style) = ProgressStyle::with_template("[{bar:30}] {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar }
    }

    fn begins(&self, done: u32, seed: u64) {
        self.bar.set_position(done.into());
        self.bar.set_message(format!("run {}, seed {seed}, 0 failures", done + 1));
        if self.bar.is_hidden() && done > 0 && done.is_multiple_of(RUNS_PER_LINE) {
            anstream::eprintln!("ddbx: {done} runs, 0 failures");
        }
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
