//! What a hold and a release cost, against how many processes there are that they do not
//! concern; and what many processes cost when nothing happens.

use std::io;
use std::time::{Duration, Instant};

use clap::Args;
use ddbx_protocol::control::{Reply, Request, Wanted, Whom};
use serde::Serialize;
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::stats::median;
use crate::verdict::{at_most, known, print_json, report};

mod central;
mod satellites;
mod startup;

pub use central::{Central, be as be_central};
pub use satellites::Satellites;
pub use startup::be as be_member;

/// The last is the first again: what chance does.
const SIZES: [usize; 4] = [10, 100, 1_000, 10];
const WARM_UP: u64 = 20;
/// Calls that are held at the same time, to see what memory they take.
const MANY: u64 = 1_000;
const PATIENCE: Duration = Duration::from_secs(30);

const GROWTH_MAX: f64 = 1.2;
const MEMORY_MIB_MAX: f64 = 200.0;
const REST_PERCENT_MAX: f64 = 2.0;

/// How to measure.
#[derive(Args)]
pub struct ScaleArgs {
    /// How often somebody is held, with each number of processes
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub holds: u64,

    /// How long nothing happens
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    rest_seconds: u64,
}

#[derive(Serialize)]
struct Row {
    processes: usize,
    attach_ms: f64,
    /// Until all concerned know.
    hold_micros: f64,
    release_micros: f64,
    /// Of central, per hold and its release.
    cpu_micros: f64,
    messages: f64,
    rest_cpu_percent: f64,
    memory_mib: f64,
    held_call_bytes: f64,
}

/// Prints the table; true if all goals are met.
pub fn run(args: &ScaleArgs, json: bool) -> bool {
    let measured = measure_all(args, json).and_then(|rows| Ok((rows, startups()?)));
    let (rows, (with, without)) = match measured {
        Ok(measured) => measured,
        Err(error) => {
            eprintln!("scale: {error}");
            return false;
        }
    };
    let [few, _, many, again] = &rows;
    let growth = |of: fn(&Row) -> f64| of(many) / of(few);
    let chance = |of: fn(&Row) -> f64| (of(again) / of(few) - 1.0).abs();
    let grows = |what: &str, of: fn(&Row) -> f64| {
        at_most(format!("{what}, 1,000 processes over 10"), growth(of), GROWTH_MAX)
            .give_or_take(chance(of))
    };
    let verdicts = [
        grows("time of a hold", |row| row.hold_micros),
        grows("time of a release", |row| row.release_micros),
        grows("central's CPU of both", |row| row.cpu_micros),
        at_most("messages of both, 1,000 processes over 10", growth(|row| row.messages), 1.0),
        at_most("1,000 processes, central's MiB", many.memory_mib, MEMORY_MIB_MAX),
        at_most("1,000 processes, central's % of a core", many.rest_cpu_percent, REST_PERCENT_MAX),
        known("bytes of central per held call", many.held_call_bytes),
        known("100 processes start in a session, ms", with),
        known("the same without a session, ms", without),
    ];
    report(&verdicts, json)
}

fn measure_all(args: &ScaleArgs, json: bool) -> io::Result<[Row; 4]> {
    if !json {
        println!(
            "{:>9} {:>10} {:>8} {:>11} {:>11} {:>8} {:>9} {:>6}",
            "processes",
            "attach ms",
            "hold µs",
            "release µs",
            "CPU µs",
            "messages",
            "at rest %",
            "MiB"
        );
    }
    let mut rows = Vec::new();
    for processes in SIZES {
        // For the satellites.
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let row = runtime.block_on(measure(args, processes))?;
        if json {
            print_json(&row);
        } else {
            println!(
                "{:>9} {:>10.1} {:>8.0} {:>11.0} {:>11.0} {:>8.1} {:>9.2} {:>6.1}",
                row.processes,
                row.attach_ms,
                row.hold_micros,
                row.release_micros,
                row.cpu_micros,
                row.messages,
                row.rest_cpu_percent,
                row.memory_mib
            );
        }
        rows.push(row);
    }
    rows.try_into().map_err(|_| io::ErrorKind::Other.into())
}

async fn measure(args: &ScaleArgs, processes: usize) -> io::Result<Row> {
    let mut central = Central::start().await?;
    let wanted =
        Wanted { spec: "process-0:Inventory.reserve@arrive".to_owned(), ..Wanted::default() };
    let Reply::Breakpoint(breakpoint) = central.ask(&Request::Break(wanted)).await? else {
        return Err(io::Error::other("the breakpoint is not set"));
    };
    let began = Instant::now();
    let mut satellites = Satellites::attach(processes, &central.address, breakpoint.id).await?;
    let attach_ms = began.elapsed().as_secs_f64() * 1e3;

    let rest = async |central: &Central| {
        let (began, used) = (Instant::now(), central.cpu()?);
        sleep(Duration::from_secs(args.rest_seconds)).await;
        io::Result::Ok((central.cpu()? - used).as_secs_f64() / began.elapsed().as_secs_f64())
    };
    // The first heartbeats of all are over then.
    sleep(Duration::from_secs(1)).await;
    let at_rest = rest(&central).await?;
    let memory_mib = central.memory_mib()?;

    for number in 1..=WARM_UP {
        once(&mut central, &mut satellites, number).await?;
    }
    let (began, used, sent) = (Instant::now(), central.cpu()?, central.view().await?.messages_sent);
    let mut times = Vec::new();
    for number in WARM_UP + 1..=WARM_UP + args.holds {
        times.push(once(&mut central, &mut satellites, number).await?);
    }
    let (used, lasted) = ((central.cpu()? - used).as_secs_f64(), began.elapsed().as_secs_f64());
    let sent = central.view().await?.messages_sent - sent;
    let per_hold = |all: f64| all / args.holds as f64;
    let micros = |nth: usize| median(times.iter().map(|times| times[nth].as_secs_f64() * 1e6));

    Ok(Row {
        processes,
        attach_ms,
        hold_micros: micros(0),
        release_micros: micros(1),
        cpu_micros: per_hold((used - at_rest * lasted) * 1e6),
        messages: per_hold(sent as f64),
        rest_cpu_percent: at_rest * 100.0,
        memory_mib,
        held_call_bytes: held_call_bytes(&mut central, &satellites).await?,
    })
}

/// Somebody is held and goes on: how long each takes until all concerned know.
async fn once(
    central: &mut Central,
    satellites: &mut Satellites,
    number: u64,
) -> io::Result<[Duration; 2]> {
    let hold = satellites.hold(number).await?;
    let asked = Instant::now();
    let (reply, release) =
        tokio::join!(central.ask(&Request::Continue(Whom::All)), satellites.goes_on(number, asked));
    reply?;
    Ok([hold, release?])
}

async fn held_call_bytes(central: &mut Central, satellites: &Satellites) -> io::Result<f64> {
    let before = central.memory_mib()?;
    let first = u64::MAX / 2;
    (first..first + MANY).try_for_each(|number| satellites.stand(number))?;
    let began = Instant::now();
    while central.view().await?.held < MANY {
        if began.elapsed() > PATIENCE {
            return Err(io::Error::other("not all who stand are known to be held"));
        }
        sleep(Duration::from_millis(10)).await;
    }
    Ok((central.memory_mib()? - before) * f64::from(1 << 20) / MANY as f64)
}

/// Milliseconds in a session, and without one.
fn startups() -> io::Result<(f64, f64)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let central = runtime.block_on(Central::start())?;
    let (with, without) = (startup::millis(Some(&central.address))?, startup::millis(None)?);
    Ok((with, without))
}
