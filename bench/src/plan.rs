//! Algorithm D offline on executions of realistic shape: nested RPCs, each
//! execution at home in one process and calling a handful of others.

use std::hint::black_box;
use std::time::{Duration, Instant};

use clap::Args;
use ddbx_central::logic::algorithm_d::{Mode, Program, ProgramBuilder, plan};
use serde::Serialize;

use crate::verdict::{at_most, print_json, report};

const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
const TIMES_SORT_MAX: f64 = 25.0;
const EXPONENT_MAX: f64 = 1.2;
const BYTES_PER_FRAGMENT_MAX: f64 = 300.0;

/// What to plan.
#[derive(Args)]
pub struct PlanArgs {
    /// Executions
    #[arg(long, default_value_t = 1_000)]
    executions: usize,

    /// Processes
    #[arg(long, default_value_t = 50)]
    processes: usize,

    /// Processes that one execution uses
    #[arg(long, default_value_t = 8)]
    servers: usize,

    /// One fragment in this many has a breakpoint
    #[arg(long, default_value_t = 100)]
    breakpoint_every: usize,

    /// Rounds; each measures the plan and the sort beside it
    #[arg(long, default_value_t = 7)]
    rounds: usize,
}

#[derive(Serialize)]
struct Row {
    fragments: usize,
    plan_ms: f64,
    sort_ms: f64,
    times_sort: f64,
    bytes_per_fragment: f64,
}

/// Prints the table; true if all goals are met.
pub fn run(args: &PlanArgs, json: bool) -> bool {
    if !json {
        println!(
            "{:>10} {:>10} {:>10} {:>8} {:>14}",
            "fragments", "plan ms", "sort ms", "ratio", "bytes/fragment"
        );
    }
    let mut rows = Vec::new();
    for fragments in SIZES {
        let row = measure(args, fragments);
        if json {
            print_json(&row);
        } else {
            println!(
                "{:>10} {:>10.2} {:>10.2} {:>8.2} {:>14.1}",
                row.fragments, row.plan_ms, row.sort_ms, row.times_sort, row.bytes_per_fragment
            );
        }
        rows.push(row);
    }
    let largest = &rows[rows.len() - 1];
    let verdicts = [
        at_most("plan over sort, largest", largest.times_sort, TIMES_SORT_MAX).ratio(),
        at_most("growth exponent", growth_exponent(&rows), EXPONENT_MAX),
        at_most(
            "peak bytes per fragment, largest",
            largest.bytes_per_fragment,
            BYTES_PER_FRAGMENT_MAX,
        ),
    ];
    report(&verdicts, json)
}

/// Medians over rounds in which the plan and the sort take turns.
fn measure(args: &PlanArgs, fragments: usize) -> Row {
    let mut rng = fastrand::Rng::with_seed(fragments as u64);
    let program = realistic(args, fragments, &mut rng);
    let pairs: Vec<(u64, u32)> = (0..fragments).map(|_| (rng.u64(..), rng.u32(..))).collect();
    let mut plans = Vec::new();
    let mut sorts = Vec::new();
    let mut peak = 0;
    for _ in 0..args.rounds {
        let mut to_sort = pairs.clone();
        sorts.push(timed(|| to_sort.sort_unstable()));
        black_box(to_sort);
        let memory = allocation_counter::measure(|| {
            plans.push(timed(|| {
                black_box(plan(&program, Mode::Virtual).expect("no zero times, no overflow"));
            }));
        });
        peak = memory.bytes_max;
    }
    let (plan_ms, sort_ms) = (median_ms(&mut plans), median_ms(&mut sorts));
    Row {
        fragments,
        plan_ms,
        sort_ms,
        times_sort: plan_ms / sort_ms,
        bytes_per_fragment: peak as f64 / fragments as f64,
    }
}

/// Random walks down and up call stacks of depth at most 4.
fn realistic(args: &PlanArgs, fragments: usize, rng: &mut fastrand::Rng) -> Program {
    let names: Vec<String> = (0..args.processes).map(|p| format!("process-{p}")).collect();
    let mut builder = ProgramBuilder::default();
    for index in 0..args.executions {
        let servers: Vec<usize> = (0..args.servers).map(|_| rng.usize(..args.processes)).collect();
        let length = fragments / args.executions + usize::from(index < fragments % args.executions);
        let mut stack = vec![servers[0]];
        let chain = (0..length).map(|place| {
            let returns = stack.len() > 1 && (stack.len() == 4 || rng.bool());
            if place > 0 && returns {
                stack.pop();
            } else if place > 0 {
                stack.push(servers[rng.usize(..servers.len())]);
            }
            (&names[stack[stack.len() - 1]], rng.u64(1..1_000))
        });
        let chain: Vec<_> = chain.collect();
        let name = format!("E{index}");
        builder.execution(&name, chain).expect("valid");
        for number in 1..=length as u64 {
            if rng.usize(..args.breakpoint_every) == 0 {
                builder.breakpoint(&name, number, rng.u64(1..10_000)).expect("valid, once each");
            }
        }
    }
    builder.build()
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median_ms(samples: &mut [Duration]) -> f64 {
    samples.sort_unstable();
    samples[samples.len() / 2].as_secs_f64() * 1e3
}

/// The slope of log time over log size, by least squares.
fn growth_exponent(rows: &[Row]) -> f64 {
    let points: Vec<(f64, f64)> =
        rows.iter().map(|row| ((row.fragments as f64).ln(), row.plan_ms.ln())).collect();
    let count = points.len() as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / count;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / count;
    let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>();
    slope / points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>()
}
