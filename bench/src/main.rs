//! Measures ddbx. Machines are noisy, so goals are ratios to something measured
//! in the same run.

use std::fmt::Display;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod calls;
mod decision;
mod plan;
mod recording;
mod screen;
mod session;
mod shop;
mod stats;
mod usage;
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
    /// Calls whose instructions are counted
    #[command(hide = true)]
    Count(calls::CountArgs),
    /// The satellite's answer to an event when nobody is held: time, allocations
    Decision,
    /// Algorithm D offline: time against sorting, growth, memory
    Plan(plan::PlanArgs),
    /// The shop with recording off and on: orders, processor time, bytes per event
    Recording(recording::RecordingArgs),
    /// The screen at rest and with much to show: processor time, memory, events missed
    Screen(screen::ScreenArgs),
    /// The screen that is measured
    #[command(hide = true)]
    Look(screen::LookArgs),
    /// One process of the shop that is recorded
    #[command(hide = true)]
    Shop(shop::RoleArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let passed = match &cli.table {
        Table::Calls => calls::run(cli.json),
        Table::Count(args) => ended_well("calls", calls::count(args)),
        Table::Decision => decision::run(cli.json),
        Table::Plan(args) => plan::run(args, cli.json),
        Table::Recording(args) => recording::run(args, cli.json),
        Table::Screen(args) => screen::run(args, cli.json),
        Table::Look(args) => ended_well("screen", screen::look(args)),
        Table::Shop(args) => ended_well(&args.role, shop::run(args)),
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Of a process that another one has started.
fn ended_well<E: Display>(name: &str, ended: Result<(), E>) -> bool {
    if let Err(error) = &ended {
        eprintln!("{name}: {error}");
    }
    ended.is_ok()
}
