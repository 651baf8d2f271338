//! Lets things go wrong with real processes, with a debugger and without, and says whether
//! the debugged program noticed.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use ddbx_tests::faults::schedule::Schedule;
use ddbx_tests::faults::{Plan, Report, run};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Play random schedules of faults with real processes, each with the debugger and without,
/// and check that the program does not notice: nothing hangs, no call ends in another way,
/// whoever stood still goes on soon, and what was said to be on the disk is there.
#[derive(Parser)]
#[command(name = "faults", version, after_help = EXAMPLES)]
struct Cli {
    /// How many schedules
    #[arg(long, value_name = "N", default_value = "300", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    schedules: u64,

    /// What they follow from; random if not given
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,

    /// Play only the schedule with this number
    #[arg(long, value_name = "NUMBER", requires = "seed", conflicts_with = "schedules")]
    only: Option<u64>,

    /// How many are played at a time: they mostly wait
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u16).range(1..=64))]
    at_once: u16,

    /// How many satellites there are in the one test that has very many; 0 leaves it out
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u16).range(0..=5_000))]
    satellites: u16,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  cargo build --release -p ddbx-tests --bins              what is debugged
  cargo run --release -p ddbx-tests --bin faults -- --schedules 300 --seed 1
  cargo run --release -p ddbx-tests --bin faults -- --seed 1 --only 17
                                                          one schedule again

What goes wrong while a call is held: central is killed, stopped or slow; a connection is cut
or half open, in one direction or both; the network loses every packet (as root); central
speaks another version; strangers say nothing or a byte now and then; a service is killed,
stopped, exits, shuts its runtime down, or panics, with unwinding and without; the disk is
full (as root). What this machine does not allow is skipped, and says so.

What is not random by nature is tested elsewhere: 1,000 satellites here, before the
schedules; storage that fails at every operation in turn in `cargo test -p ddbx-recording`;
that no decision depends on a clock that can jump in `cargo test -p ddbx-tests --test tidy`;
strangers of all kinds in `intrude`.

Exit codes:
  0 all is well   1 not so, or it could not be tried   2 bad input";

fn main() -> ExitCode {
    let cli = Cli::parse();
    let seed = cli.seed.unwrap_or_else(|| fastrand::u64(..));
    match play(&cli, seed) {
        Ok(report) if cli.json => match serde_json::to_string_pretty(&report) {
            Ok(text) => {
                println!("{text}");
                for violation in &report.violations {
                    eprintln!("{}\n  again: {}", violation.what, violation.again);
                }
                verdict(&report)
            }
            Err(error) => failed(&error.to_string()),
        },
        Ok(report) => {
            println!("{report}");
            verdict(&report)
        }
        Err(error) => failed(&format!("{error} (seed {seed})")),
    }
}

fn play(cli: &Cli, seed: u64) -> Result<Report, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let programs = here.parent().map(PathBuf::from).ok_or("this program is nowhere")?;
    let numbers = cli.only.map_or_else(|| (0..cli.schedules).collect(), |number| vec![number]);
    if let Some(number) = cli.only {
        let schedule = Schedule::new(seed, number);
        let recorded = if schedule.is_recorded { ", recorded" } else { "" };
        eprintln!("{} services{recorded}", schedule.services);
        schedule.acts.iter().for_each(|act| eprintln!("{act}"));
    }
    // One again is about that one alone.
    let satellites = if cli.only.is_some() { 0 } else { cli.satellites.into() };
    let plan = Plan { numbers, seed, at_once: cli.at_once.into(), satellites, programs };
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {eta}").expect("valid");
    let bar = ProgressBar::new(plan.numbers.len() as u64).with_style(style);
    let (_stop, stopped) = interruptions()?;
    let report = run(&plan, &stopped, |_| bar.inc(1));
    bar.finish_and_clear();
    report
}

/// What is heard from now on: Ctrl-C, or a polite request to end. Nothing that was started
/// may stay behind, so nobody is ended by them at once.
fn interruptions() -> Result<(tokio::runtime::Runtime, watch::Receiver<bool>), String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let listens = builder.worker_threads(1).enable_all().build();
    let listens = listens.map_err(|error| error.to_string())?;
    let (stop, stopped) = watch::channel(false);
    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    kinds.extend((!ignores_hangups()).then(SignalKind::hangup));
    for kind in kinds {
        let _in_it = listens.enter();
        let mut heard = signal(kind).map_err(|error| error.to_string())?;
        let stop = stop.clone();
        listens.spawn(async move {
            heard.recv().await;
            stop.send_replace(true);
        });
    }
    Ok((listens, stopped))
}

/// Whether it was started by `nohup`, or something like it.
fn ignores_hangups() -> bool {
    const HANGUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & HANGUP != 0)
}

fn verdict(report: &Report) -> ExitCode {
    if report.is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::FAILURE
}
