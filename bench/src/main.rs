//! Measures ddbx. Machines are noisy, so goals are ratios to something measured
//! in the same run.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod calls;
mod decision;
mod plan;
mod recording;
mod shop;
mod verdict;

/// Measure ddbx; each table compares with something measured in the same run.
#[derive(Parser)]
#[command(name = "ddbx-bench", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    table: Table,

    /// Print JSON lines instead of a table
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Table {
    /// A call in memory: bare, wrapped without a session, in a session
    Calls,
    /// The satellite's answer to an event when nobody is held: time, allocations
    Decision,
    /// Algorithm D offline: time against sorting, growth, memory
    Plan(plan::PlanArgs),
    /// The shop with recording off and on: orders, processor time, bytes per event
    Recording(recording::RecordingArgs),
    /// One process of the shop that is recorded
    #[command(hide = true)]
    Shop(shop::RoleArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let passed = match &cli.table {
        Table::Calls => calls::run(cli.json),
        Table::Decision => decision::run(cli.json),
        Table::Plan(args) => plan::run(args, cli.json),
        Table::Recording(args) => recording::run(args, cli.json),
        Table::Shop(args) => match shop::run(args) {
            Ok(()) => true,
            Err(error) => {
                eprintln!("{}: {error}", args.role);
                false
            }
        },
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
