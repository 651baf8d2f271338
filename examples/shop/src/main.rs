//! The `shop` command: one process of the shop.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use ddbx_shop::{Error, Load, Options, SECOND_AFTER, race, run, traffic};

/// One process of a small shop, to be debugged with ddbx.
///
/// Start registry, payments, inventory, orders and gateway, each in a process of its
/// own, then traffic. They meet in the directory that SHOP_DIR names; SHOP_SLOWER
/// makes every deadline and lease longer by that factor.
#[derive(Parser)]
#[command(name = "shop", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Who is there: keeps the leases
    Registry,
    /// What things cost, and who pays
    Payments,
    /// What is on the shelves
    Inventory,
    /// Turns a wish into an order
    Orders,
    /// Where customers come in
    Gateway,
    /// Customers who buy; prints one line of JSON at the end
    Traffic(TrafficArgs),
    /// Orders the last lamp twice; prints whether it was oversold, and fails if it was
    Race(RaceArgs),
}

#[derive(Args)]
struct RaceArgs {
    /// How much later the second order comes
    #[arg(long, value_name = "TIME", default_value_t = SECOND_AFTER.into())]
    second_after: humantime::Duration,
}

#[derive(Args)]
struct TrafficArgs {
    /// How many customers buy at the same time
    #[arg(long, default_value_t = Load::default().customers)]
    customers: u32,
    /// What they buy and how long they pause follows from this
    #[arg(long, default_value_t = Load::default().seed)]
    seed: u64,
    /// Stop when each customer has bought so often, too
    #[arg(long, value_name = "N")]
    purchases: Option<u32>,
    /// Stop after this time, such as 5s or 500ms; without it, on SIGTERM or ctrl-c
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    lasts: Option<Duration>,
    /// Print a line this often before the end, too
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    every: Option<Duration>,
    /// Stop when standard input is closed, too
    #[arg(long)]
    until_stdin_closes: bool,
    /// Buy again at once, to see how much the shop can take
    #[arg(long)]
    without_pauses: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let command = Cli::parse().command;
    let options = match Options::from_env() {
        Ok(options) => options,
        Err(error) => return failure(&error, 2),
    };
    match execute(command, &options).await {
        Ok(code) => code,
        Err(error) => failure(&error, 1),
    }
}

async fn execute(command: Command, options: &Options) -> Result<ExitCode, Error> {
    let service = match command {
        Command::Registry => "registry",
        Command::Payments => "payments",
        Command::Inventory => "inventory",
        Command::Orders => "orders",
        Command::Gateway => "gateway",
        Command::Traffic(args) => {
            let TrafficArgs { customers, seed, purchases, lasts, every, .. } = args;
            let (until_stdin_closes, pauses) = (args.until_stdin_closes, !args.without_pauses);
            let load =
                Load { customers, seed, purchases, lasts, every, until_stdin_closes, pauses };
            print(&traffic(options, &load, print).await?);
            return Ok(ExitCode::SUCCESS);
        }
        Command::Race(RaceArgs { second_after }) => {
            let race = race(options, second_after.into()).await?;
            print(&race);
            return Ok(ExitCode::from(u8::from(race.is_oversold())));
        }
    };
    run(service, options).await?;
    Ok(ExitCode::SUCCESS)
}

/// A reader who has gone away is no reason to fail.
fn print(line: &impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

fn failure(error: &Error, code: u8) -> ExitCode {
    eprintln!("shop: {error}");
    ExitCode::from(code)
}
