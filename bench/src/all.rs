//! Every table, with one command.

use clap::{Args, Parser as _};

use crate::{Cli, measure};

/// How to measure.
#[derive(Args)]
pub struct AllArgs {
    /// How long calls between processes are measured at the most, if their null rows do not
    /// become narrow before; the rest takes about six minutes more
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,

    /// Shorter, to see that everything works: what it prints says little, and the chart
    /// stays as it is
    #[arg(long)]
    quick: bool,
}

/// Prints all tables; true if all goals are met.
pub fn run(args: &AllArgs, json: bool) -> bool {
    let seconds = (args.minutes * 60).to_string();
    let tables: &[&[&str]] = if args.quick {
        &[
            &["calls"],
            &["decision"],
            &["rpc", "--seconds", "60"],
            &["holds", "--seconds", "5"],
            &["scale", "--holds", "50", "--rest-seconds", "1"],
            &["load", "--seconds", "3"],
            &["held", "--connections", "2", "--seconds", "3"],
            &["recorder"],
            &["replay", "--rounds", "1"],
            &["plan", "--rounds", "1"],
            &["recording", "--rounds", "4"],
            &["screen", "--seconds", "1"],
        ]
    } else {
        &[
            &["calls"],
            &["decision"],
            &["rpc", "--seconds", &seconds],
            &["chart"],
            &["holds"],
            &["scale"],
            &["load"],
            &["held", "--seconds", "10"],
            &["recorder"],
            &["replay"],
            &["plan"],
            &["recording"],
            &["screen"],
        ]
    };
    let mut passed = true;
    for table in tables {
        if !json {
            println!("\n{}", table[0]);
        }
        let words = ["ddbx-bench"].iter().chain(*table).chain(json.then_some(&"--json"));
        passed &= measure(&Cli::parse_from(words));
    }
    passed
}
