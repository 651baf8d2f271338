//! How long a replay takes, over how long the run itself took: customers of the shop who
//! never pause, with `ddbx run --record` and `ddbx replay`, both from their start to their
//! end.

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
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..))]
    purchases: u32,

    /// How many runs are recorded, and replayed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
}

/// Prints the table; true if the goal is met.
pub fn run(args: &ReplayArgs, json: bool) -> bool {
    let times: io::Result<Vec<_>> = (0..args.runs).map(|_| measure(args.purchases)).collect();
    let times = match times {
        Ok(times) => times,
        Err(error) => {
            eprintln!("replay: {error}");
            return false;
        }
    };
    let ratio = Spread::of(times.iter().map(|[original, replay]| replay / original));
    let original = Spread::of(times.iter().map(|[original, _]| *original));
    let verdicts = [
        known("the run itself, seconds", original.median).give_or_take(original.doubt()),
        at_most("replay, times as long as the run", ratio.median, RATIO_MAX)
            .give_or_take(ratio.doubt())
            .ratio(),
    ];
    report(&verdicts, json)
}

/// Seconds of the run, and of its replay.
fn measure(purchases: u32) -> io::Result<[f64; 2]> {
    let ddbx = ddbx()?;
    let dir = tempfile::Builder::new().prefix("ddbx-bench-").tempdir()?;
    let file = dir.path().join("ddbx.toml");
    fs::write(&file, system(dir.path(), purchases)?)?;
    let recording = dir.path().join("recording");
    let run = ["run", "--headless", "-f", text(&file)?, "--record", text(&recording)?];
    let replay = ["replay", "--headless", text(&recording)?];
    Ok([seconds(&ddbx, &run)?, seconds(&ddbx, &replay)?])
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
