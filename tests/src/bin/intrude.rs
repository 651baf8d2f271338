//! Tries to get into sessions that it opens itself, in many ways, and says what became
//! of it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use ddbx_tests::intrusion::{Plan, knock, run};

/// Make unauthorised attempts at real sessions over a Unix socket, TCP and TLS, and check
/// that all are refused and nobody learns anything.
#[derive(Parser)]
#[command(name = "intrude", version, after_help = EXAMPLES)]
struct Cli {
    /// How many attempts
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    attempts: u32,

    /// What they are made of; random if not given
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Only knock at this socket, as whoever this is
    #[arg(long, hide = true)]
    knock: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  cargo build --release -p ddbx-tests --bins                  what is attacked
  cargo run --release -p ddbx-tests --bin intrude             1,000 attempts
  cargo run --release -p ddbx-tests --bin intrude -- --attempts 5000 --seed 7 --json

As root it also tries as another user; otherwise it says that it does not.

Exit codes:
  0 all refused, nothing leaked   1 not so   2 bad input";

fn main() -> ExitCode {
    let cli = Cli::parse();
    let attempts = cli.attempts as usize;
    if let Some(socket) = &cli.knock {
        let knocked = knock(socket, attempts).map_err(|error| error.to_string());
        let said = knocked.and_then(|k| serde_json::to_string(&k).map_err(|e| e.to_string()));
        return said.map_or_else(|error| failed(&error), |said| well(&said, true));
    }
    let seed = cli.seed.unwrap_or_else(|| fastrand::u64(..));
    let here = std::env::current_exe().map_err(|error| error.to_string());
    let programs = here.and_then(|here| {
        here.parent().map(PathBuf::from).ok_or_else(|| "this program is nowhere".to_owned())
    });
    let report = programs.and_then(|programs| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        runtime.block_on(run(&Plan { attempts, seed, programs }))
    });
    match report {
        Err(error) => failed(&format!("{error} (seed {seed})")),
        Ok(report) if cli.json => match serde_json::to_string_pretty(&report) {
            Ok(text) => well(&text, report.is_well),
            Err(error) => failed(&error.to_string()),
        },
        Ok(report) => well(&report.to_string(), report.is_well),
    }
}

fn well(text: &str, is_well: bool) -> ExitCode {
    println!("{text}");
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::FAILURE
}
