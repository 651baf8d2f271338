//! The `ddbx` command, as a library so that tests, benchmarks and fuzzers can
//! reach its parsers.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod exit;
pub mod plan;
pub mod run;
mod text;

/// A debugger for distributed programs that talk by RPC.
///
/// Stop one service at a breakpoint; the others go on until going on could
/// change the order of events, and nothing times out because somebody is looking.
#[derive(Parser)]
#[command(name = "ddbx", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Plan(plan::PlanArgs),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Plan(args) => plan::run(&args),
    };
    exit::code(outcome)
}
