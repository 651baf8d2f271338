//! How long a replay takes, over how long the run itself took: customers of the shop who
//! never pause, with `ddbx run --record` and `ddbx replay`, both from their start to their
//! end.
//!
//! In each round the run is recorded, replayed twice, and recorded once more: what drifts
//! meanwhile is the same for both, and the two recorded runs tell what chance does.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;
use std::{env, fs, io};

use clap::Args;

use crate::again::outside_of_sessions;
use crate::stats::Spread;
use crate::verdict::{at_most, known, report};

const RATIO_MAX: f64 = 1.25;

/// How to measure.
#[derive(Args)]
pub struct ReplayArgs {
    /// How often each customer buys
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    purchases: u32,

    /// How many rounds of two runs and two replays
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
}

/// Seconds from start to end.
struct Round {
    runs: [f64; 2],
    replays: [f64; 2],
}

/// Prints the table; true if the goal is met.
pub fn run(args: &ReplayArgs, json: bool) -> bool {
    let rounds: io::Result<Vec<_>> = (0..args.rounds).map(|_| measure(args.purchases)).collect();
    let rounds = match rounds {
        Ok(rounds) => rounds,
        Err(error) => {
            eprintln!("replay: {error}");
            return false;
        }
    };
    let mean = |[one, other]: [f64; 2]| f64::midpoint(one, other);
    let run = Spread::of(rounds.iter().map(|round| mean(round.runs)));
    let null = Spread::of(rounds.iter().map(|round| round.runs[1] / round.runs[0]));
    let ratio = Spread::of(rounds.iter().map(|round| mean(round.replays) / mean(round.runs)));
    let verdicts = [
        known("the run itself, seconds", run.median).give_or_take(run.doubt()),
        known("the run again, times as long (null)", null.median)
            .give_or_take(null.doubt())
            .ratio(),
        known("replay, lower quartile of times as long as the run", ratio.quartile).ratio(),
        known("replay, upper quartile", ratio.upper_quartile).ratio(),
        at_most("replay, times as long as the run", ratio.median, RATIO_MAX)
            .give_or_take(null.doubt())
            .ratio(),
    ];
    report(&verdicts, json)
}

/// A run, two replays of it, and another run.
fn measure(purchases: u32) -> io::Result<Round> {
    let ddbx = ddbx()?;
    let dir = tempfile::Builder::new().prefix("ddbx-bench-").tempdir()?;
    let file = dir.path().join("ddbx.toml");
    fs::write(&file, system(dir.path(), purchases)?)?;
    let record = |name: &str| {
        let recording = dir.path().join(name);
        let args = ["run", "--headless", "-f", text(&file)?, "--record", text(&recording)?];
        seconds(&ddbx, &args)
    };
    let recorded = dir.path().join("recording");
    let replay = || seconds(&ddbx, &["replay", "--headless", text(&recorded)?]);
    let (first, replays) = (record("recording")?, [replay()?, replay()?]);
    Ok(Round { runs: [first, record("again")?], replays })
}

fn seconds(ddbx: &Path, args: &[&str]) -> io::Result<f64> {
    let began = Instant::now();
    let mut command = outside_of_sessions(ddbx);
    let output = command.args(args).stdin(Stdio::null()).stderr(Stdio::piped()).output()?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        return Err(io::Error::other(format!("ddbx {}: {}\n{said}", args[0], output.status)));
    }
    Ok(began.elapsed().as_secs_f64())
}

/// The command, which is built beside this program.
fn ddbx() -> io::Result<PathBuf> {
    let ddbx = env::current_exe()?.with_file_name("ddbx");
    if ddbx.exists() {
        return Ok(ddbx);
    }
    let why = format!("{} is missing: cargo build --release -p ddbx-cli", ddbx.display());
    Err(io::Error::new(io::ErrorKind::NotFound, why))
}

/// The shop as `ddbx run` starts it: this same program, in its hidden role.
fn system(dir: &Path, purchases: u32) -> io::Result<String> {
    let program = env::current_exe()?;
    let (program, dir) = (text(&program)?.to_owned(), text(dir)?);
    let mut system = "session = \"bench\"\n".to_owned();
    let mut before: Vec<&str> = Vec::new();
    for role in ddbx_shop::services().iter().chain(&["traffic"]) {
        let purchases = purchases.to_string();
        let command = [&program, "shop", role, "--until-told", "--purchases", &purchases];
        system.push_str(&format!(
            "\n[[process]]\nname = {role:?}\ncommand = {command:?}\nafter = {before:?}\n\
             env = {{ SHOP_DIR = {dir:?}, SHOP_SLOWER = \"20\" }}\n"
        ));
        system.push_str(match *role {
            "traffic" => "ends_run = true\n",
            _ => "ready = \"attached\"\n",
        });
        before.push(role);
    }
    Ok(system)
}

fn text(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| io::Error::other("the path of this program is no text"))
}
