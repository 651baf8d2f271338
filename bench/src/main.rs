//! Measures ddbx. Machines are noisy, so goals are ratios to something measured
//! in the same run.

use std::fmt::Display;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod again;
mod all;
mod calls;
mod chart;
mod decision;
mod held;
mod holds;
mod load;
mod peers;
mod plan;
mod recorder;
mod recording;
mod replay;
mod rpc;
mod scale;
mod screen;
mod session;
mod shop;
mod soak;
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
    /// Every table, one after the other, and the chart
    All(all::AllArgs),
    /// A call in memory: bare, wrapped without a session, in a session
    Calls,
    /// The same calls, measured by one of many processes
    #[command(hide = true)]
    CallsOnce,
    /// Calls whose instructions are counted
    #[command(hide = true)]
    Count(calls::CountArgs),
    /// The satellite's answer to an event when nobody is held: time, allocations
    Decision,
    /// Algorithm D offline: time against sorting, growth, memory
    Plan(plan::PlanArgs),
    /// The shop with recording off and on: orders, processor time, bytes per event
    Recording(recording::RecordingArgs),
    /// Calls between processes on one core: throughput, latency, processor time
    Rpc(rpc::RpcArgs),
    /// Calls that a hold does not concern: throughput and latency over before
    Holds(holds::HoldsArgs),
    /// The recorder alone: events per second, bytes and time per event
    Recorder,
    /// A replay's time over that of the run
    Replay(replay::ReplayArgs),
    /// Holds and releases against the number of processes; central at rest
    Scale(scale::ScaleArgs),
    /// Draws docs/overhead.svg from what rpc has measured
    Chart(chart::ChartArgs),
    /// The screen at rest and with much to show: processor time, memory, events missed
    Screen(screen::ScreenArgs),
    /// Very many satellites, and recorded calls beside bare ones
    Load(load::LoadArgs),
    /// Very many calls that are held for long: errors, memory, the release
    Held(held::HeldArgs),
    /// The shop for long, while breakpoints come and go: memory, errors, order
    Soak(soak::SoakArgs),
    /// The debugger of the session that is measured
    #[command(hide = true)]
    Central,
    /// One of many processes of a session
    #[command(hide = true)]
    Member,
    /// Who makes very many calls at once
    #[command(hide = true)]
    Callers(held::CallersArgs),
    /// Who calls
    #[command(hide = true)]
    Client(peers::args::ClientArgs),
    /// Who is called
    #[command(hide = true)]
    Server(peers::args::ServerArgs),
    /// The screen that is measured
    #[command(hide = true)]
    Look(screen::LookArgs),
    /// One process of the shop that is recorded
    #[command(hide = true)]
    Shop(shop::RoleArgs),
}

fn main() -> ExitCode {
    if measure(&Cli::parse()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// True if all goals of the table are met.
fn measure(cli: &Cli) -> bool {
    match &cli.table {
        Table::All(args) => all::run(args, cli.json),
        Table::Calls => calls::run(cli.json),
        Table::CallsOnce => ended_well("calls", calls::once()),
        Table::Count(args) => ended_well("calls", calls::count(args)),
        Table::Decision => decision::run(cli.json),
        Table::Plan(args) => plan::run(args, cli.json),
        Table::Recording(args) => recording::run(args, cli.json),
        Table::Rpc(args) => rpc::run(args, cli.json),
        Table::Holds(args) => holds::run(args, cli.json),
        Table::Recorder => recorder::run(cli.json),
        Table::Replay(args) => replay::run(args, cli.json),
        Table::Scale(args) => scale::run(args, cli.json),
        Table::Chart(args) => chart::run(args),
        Table::Load(args) => load::run(args, cli.json),
        Table::Held(args) => held::run(args, cli.json),
        Table::Callers(args) => ended_well("callers", held::callers(args)),
        Table::Soak(args) => soak::run(args, cli.json),
        Table::Central => ended_well("central", scale::be_central()),
        Table::Member => ended_well("member", scale::be_member()),
        Table::Client(args) => ended_well("client", rpc::client(args)),
        Table::Server(args) => ended_well("server", rpc::server(args)),
        Table::Screen(args) => screen::run(args, cli.json),
        Table::Look(args) => ended_well("screen", screen::look(args)),
        Table::Shop(args) => ended_well(&args.role, shop::run(args)),
    }
}

/// Of a process that another one has started.
fn ended_well<E: Display>(name: &str, ended: Result<(), E>) -> bool {
    if let Err(error) = &ended {
        eprintln!("{name}: {error}");
    }
    ended.is_ok()
}
