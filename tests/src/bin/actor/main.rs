//! One process of a system that end-to-end tests debug.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use ddbx_shop::{Load, Options, traffic};
use tokio::io::AsyncReadExt as _;

mod orders;
mod walker;

/// One process of a system that end-to-end tests debug.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    play: Play,
}

#[derive(Subcommand)]
enum Play {
    /// Takes part in walks
    Walker(walker::Args),
    /// A service of the shop, or its traffic
    Shop {
        /// Which
        service: String,
        /// Where the services meet
        dir: PathBuf,
        /// By how much its clocks are slower
        #[arg(long, default_value_t = 1)]
        slower: u32,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    match Cli::parse().play {
        Play::Walker(args) => walker::play(args).await,
        Play::Shop { service, dir, slower } => shop(&service, &Options { dir, slower }).await,
    }
    // Here the runtime is shut down, with whatever is still held in it.
}

async fn shop(service: &str, options: &Options) -> ExitCode {
    let played = if service == "traffic" {
        let load = Load { customers: 2, until_stdin_closes: true, ..Load::default() };
        traffic(options, &load, |_| ()).await.map(|report| println!("{report}"))
    } else {
        tokio::select! {
            ended = ddbx_shop::run(service, options) => ended,
            () = stdin_closed() => Ok(()),
        }
    };
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{service}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whoever started this process is gone, or wants it to end.
async fn stdin_closed() {
    let mut stdin = tokio::io::stdin();
    let mut bytes = [0; 64];
    while !matches!(stdin.read(&mut bytes).await, Ok(0)) {}
}

/// How often to look for what nobody tells.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
