//! Very many satellites at one central, and as many recorded calls as two of its processes
//! can make, beside what tarpc alone can.

use std::io;
use std::time::{Duration, Instant};

use clap::Args;
use ddbx_protocol::control::{ProcessState, ProcessView, Reply, Request, Wanted};
use serde::Serialize;
use tokio::runtime::Builder;
use tokio::task::block_in_place;

use crate::peers::{Flavor, Lane, Method, Transport};
use crate::rpc::abba::{Cell, Rounds, Row};
use crate::rpc::pair::{Pair, Setup};
use crate::scale::{Central, Satellites};
use crate::verdict::{at_least, at_most, known, print_json, report};

const CELL: Cell = Cell {
    flavor: Flavor::CurrentThread,
    transport: Transport::Tcp,
    method: Method::Echo,
    outstanding: 64,
};

/// So many recorded calls in a second are enough, or this part of what bare tarpc makes.
const CALLS_PER_SECOND_MIN: f64 = 50_000.0;
const RATIO_MIN: f64 = 0.8;

/// How to measure.
#[derive(Args)]
pub struct LoadArgs {
    /// How many satellites there are besides those that call
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..))]
    satellites: u16,

    /// How long there are calls
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
}

/// What was measured.
#[derive(Serialize)]
struct Load {
    satellites: u16,
    attach_ms: f64,
    /// Those that are still there when all is over.
    stayed: usize,
    null: Row,
    recorded: Row,
    bare_per_second: f64,
    /// Of all that happened in the processes that call.
    events_written: u64,
    events_missing: u64,
    central_mib: f64,
    central_cpu_percent: f64,
}

/// Prints what was measured; true if all goals are met.
pub fn run(args: &LoadArgs, json: bool) -> bool {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    // On a thread of the runtime, where others can go on while this one waits.
    let task = |runtime: tokio::runtime::Runtime| {
        let args = (args.satellites, Duration::from_secs(args.seconds));
        runtime.block_on(async { tokio::spawn(measure(args)).await.map_err(io::Error::other)? })
    };
    let load = match runtime.and_then(task) {
        Ok(load) => load,
        Err(error) => {
            eprintln!("load: {error}");
            return false;
        }
    };
    if json {
        print_json(&load);
    }
    let Load { null, recorded, bare_per_second, .. } = &load;
    let enough = CALLS_PER_SECOND_MIN.min(bare_per_second * RATIO_MIN);
    let chance = null.throughput.doubt();
    let verdicts = [
        known("ms until all satellites are attached", load.attach_ms),
        at_least("satellites that stay attached", load.stayed as f64, f64::from(load.satellites)),
        known("bare calls/s", *bare_per_second),
        known("bare again over bare (null)", null.throughput.median).give_or_take(chance),
        at_least("recorded calls/s", recorded.calls_per_second, enough)
            .give_or_take(bare_per_second * chance),
        known("recorded over bare", recorded.throughput.median).give_or_take(chance),
        known("CPU µs added per recorded call", recorded.cpu_micros_added.median)
            .give_or_take(null.cpu_micros_added.doubt()),
        known("events recorded", load.events_written as f64),
        at_most("events that were not recorded", load.events_missing as f64, 0.0),
        known("central's MiB", load.central_mib),
        known("central's % of a core", load.central_cpu_percent),
    ];
    report(&verdicts, json)
}

async fn measure((satellites, lasts): (u16, Duration)) -> io::Result<Load> {
    let mut central = Central::start().await?;
    let wanted = Wanted { spec: "process-0:Nobody.calls@arrive".to_owned(), ..Wanted::default() };
    let Reply::Breakpoint(breakpoint) = central.ask(&Request::Break(wanted)).await? else {
        return Err(io::Error::other("the breakpoint is not set"));
    };
    let began = Instant::now();
    let number = usize::from(satellites);
    let attached = Satellites::attach(number, &central.address, breakpoint.id).await?;
    let attach_ms = began.elapsed().as_secs_f64() * 1e3;

    let session = Some(central.address.clone());
    let setup = Setup { session, is_recorded: true, ..Setup::default() };
    let mut pair = block_in_place(|| Pair::start(&setup))?;
    let (began, used) = (Instant::now(), central.cpu()?);
    let (null, recorded, bare_per_second) = block_in_place(|| rounds(&mut pair, lasts))?;
    let cpu = (central.cpu()? - used).as_secs_f64() / began.elapsed().as_secs_f64();

    let Reply::Processes(processes) = central.ask(&Request::Processes).await? else {
        return Err(io::Error::other("nobody says who takes part"));
    };
    let is_satellite =
        |view: &&ProcessView| view.name.starts_with("process-") && view.state != ProcessState::Gone;
    let sum = |of: fn(&ProcessView) -> Option<u64>| processes.iter().filter_map(of).sum();
    drop(attached);
    Ok(Load {
        satellites,
        attach_ms,
        stayed: processes.iter().filter(is_satellite).count(),
        null,
        recorded,
        bare_per_second,
        events_written: sum(|view| view.written),
        events_missing: sum(|view| view.missing),
        central_mib: central.memory_mib()?,
        central_cpu_percent: cpu * 100.0,
    })
}

/// Bare, bare again and recorded take turns. What they say, and the bare calls per second.
fn rounds(pair: &mut Pair, lasts: Duration) -> io::Result<(Row, Row, f64)> {
    let mut null = Rounds::new("bare again (null)", CELL);
    let mut recorded = Rounds::new("recorded", CELL);
    let mut bare = Rounds::new("bare", CELL);
    let began = Instant::now();
    while began.elapsed() < lasts {
        for (rounds, lane) in [(&mut null, Lane::Again), (&mut recorded, Lane::Wrapped)] {
            let mut window = |lane| pair.window(&CELL.window(lane));
            let [a, b, c, d] =
                [window(Lane::Bare)?, window(lane)?, window(lane)?, window(Lane::Bare)?];
            rounds.push([a, b, c, d]);
            bare.push([a, a, d, d]);
        }
    }
    Ok((null.row(), recorded.row(), bare.row().calls_per_second))
}
