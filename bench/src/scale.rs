//! What a hold and a release cost, against how many processes there are that they do not
//! concern; and what many processes cost when nothing happens.
//!
//! Sessions of all sizes are open at the same time and take turns, so that a machine that
//! gets slower meanwhile is slower for all; and everything is on one core, for whether a message
//! has to wake another one matters more than all that is measured here.

use std::io;

use clap::Args;
use serde::Serialize;
use tokio::runtime::Builder;

use crate::peers::pin;
use crate::stats::{Spread, median};
use crate::verdict::{Verdict, at_most, known, print_json, report};

mod central;
mod satellites;
mod setting;
mod startup;

pub use central::{Central, be as be_central};
pub use satellites::Satellites;
use setting::{AtRest, Block, Setting};
pub use startup::be as be_member;

/// The last is the first again: what chance does.
const SIZES: [usize; 4] = [10, 100, 1_000, 10];
/// Holds and releases of a session, until it is another's turn.
const BLOCK: u64 = 10;

const GROWTH_MAX: f64 = 1.2;
const MEMORY_MIB_MAX: f64 = 200.0;
const REST_PERCENT_MAX: f64 = 2.0;

/// How to measure.
#[derive(Args)]
pub struct ScaleArgs {
    /// How often somebody is held, with each number of processes
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..))]
    pub holds: u64,

    /// How long nothing happens, with each number of processes
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    rest_seconds: u64,
}

/// What was measured with one number of processes.
#[derive(Serialize)]
struct Row {
    processes: usize,
    #[serde(flatten)]
    at_rest: AtRest,
    #[serde(skip)]
    blocks: Vec<Block>,
    /// Until all concerned know.
    hold_micros: f64,
    release_micros: f64,
    /// Of central, per hold and its release.
    cpu_micros: f64,
    messages: f64,
    held_call_bytes: f64,
}

/// Prints the table; true if all goals are met.
pub fn run(args: &ScaleArgs, json: bool) -> bool {
    let measured = pin::on_one_core(|| measure(args)).and_then(|rows| Ok((rows, startups()?)));
    let (rows, (with, without)) = match measured {
        Ok(measured) => measured,
        Err(error) => {
            eprintln!("scale: {error}");
            return false;
        }
    };
    match json {
        true => rows.iter().for_each(print_json),
        false => print(&rows),
    }
    let [few, _, many, again] = &rows;
    let grows = |what: &str, of: fn(&Block) -> f64| growth(what, [few, many, again], of);
    let verdicts = [
        grows("time of a hold", |block| block.hold_micros),
        grows("time of a release", |block| block.release_micros),
        grows("central's CPU of both", |block| block.cpu_micros),
        at_most("messages of both, 1,000 processes over 10", many.messages / few.messages, 1.0)
            .ratio(),
        at_most("1,000 processes, central's MiB", many.at_rest.memory_mib, MEMORY_MIB_MAX),
        at_most(
            "1,000 processes, central's % of a core",
            many.at_rest.rest_cpu_percent,
            REST_PERCENT_MAX,
        ),
        known("bytes of central per held call", many.held_call_bytes),
        known("100 processes start in a session, ms", with),
        known("the same without a session, ms", without),
    ];
    report(&verdicts, json)
}

/// How much more it is with many than with few, block by block; what chance does is known from
/// a second session with few.
fn growth(what: &str, [few, many, again]: [&Row; 3], of: fn(&Block) -> f64) -> Verdict {
    let over_few = |row: &Row| {
        let blocks = row.blocks.iter().zip(&few.blocks);
        Spread::of(blocks.map(|(block, few)| of(block) / of(few)))
    };
    let null = over_few(again);
    at_most(format!("{what}, 1,000 processes over 10"), over_few(many).median, GROWTH_MAX)
        .give_or_take(null.doubt().max((null.median - 1.0).abs()))
        .ratio()
}

fn measure(args: &ScaleArgs) -> io::Result<[Row; 4]> {
    // For the satellites.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut settings = Vec::new();
        let mut at_rest = Vec::new();
        for processes in SIZES {
            let (setting, rest) = Setting::open(processes, args.rest_seconds).await?;
            settings.push(setting);
            at_rest.push(rest);
        }
        let mut blocks = SIZES.map(|_| Vec::new());
        let mut order = SIZES.map(|_| 0);
        order.iter_mut().enumerate().for_each(|(nth, place)| *place = nth);
        for _ in 0..args.holds.div_ceil(BLOCK) {
            fastrand::shuffle(&mut order);
            for nth in order {
                blocks[nth].push(settings[nth].block(BLOCK, &at_rest[nth]).await?);
            }
        }
        let mut rows = Vec::new();
        for ((mut setting, at_rest), blocks) in settings.into_iter().zip(at_rest).zip(blocks) {
            let of = |of: fn(&Block) -> f64| median(blocks.iter().map(of));
            rows.push(Row {
                processes: setting.processes,
                at_rest,
                hold_micros: of(|block| block.hold_micros),
                release_micros: of(|block| block.release_micros),
                cpu_micros: of(|block| block.cpu_micros),
                messages: of(|block| block.messages),
                held_call_bytes: setting.held_call_bytes().await?,
                blocks,
            });
        }
        rows.try_into().map_err(|_| io::ErrorKind::Other.into())
    })
}

fn print(rows: &[Row]) {
    println!(
        "{:>9} {:>10} {:>8} {:>11} {:>11} {:>8} {:>9} {:>6}",
        "processes", "attach ms", "hold µs", "release µs", "CPU µs", "messages", "at rest %", "MiB"
    );
    for row in rows {
        println!(
            "{:>9} {:>10.1} {:>8.0} {:>11.0} {:>11.0} {:>8.1} {:>9.2} {:>6.1}",
            row.processes,
            row.at_rest.attach_ms,
            row.hold_micros,
            row.release_micros,
            row.cpu_micros,
            row.messages,
            row.at_rest.rest_cpu_percent,
            row.at_rest.memory_mib
        );
    }
}

/// Milliseconds in a session, and without one.
fn startups() -> io::Result<(f64, f64)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let central = runtime.block_on(Central::start())?;
    let (with, without) = (startup::millis(Some(&central.address))?, startup::millis(None)?);
    Ok((with, without))
}
