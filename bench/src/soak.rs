//! The shop for long, under load, while breakpoints are set, hit and removed at random:
//! nothing times out, nothing grows, and the order of events is kept.

use std::io;
use std::time::{Duration, Instant};

use clap::Args;
use ddbx_protocol::control::{Reply, Request, SessionView};
use ddbx_shop::{Options, TrafficReport};
use serde::Serialize;
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::scale::Central;
use crate::shop::{Plan, Record, Shop};
use crate::verdict::{Verdict, at_least, at_most, known, print_json, report, skipped};

mod debugging;
mod memory;
mod order;
mod script;

use debugging::{Debugging, Tally};
use memory::{Growth, Watch};
use order::Order;
use script::Script;

/// Whether memory grows is not known sooner.
const TELLING: Duration = Duration::from_secs(120);

/// How often memory is looked at.
const SAMPLES: u32 = 500;

/// For how long somebody is held at the most, in deadlines of the shop.
const HOLD_DEADLINES_MAX: u32 = 3;

/// How many calls each service has handled before anybody is held.
const ORDERS_FIRST: u64 = 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// How long all run undisturbed at the end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How to run it.
#[derive(Args)]
pub struct SoakArgs {
    /// How long
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,

    /// What is held, where and for how long follows from this
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// How many customers buy at the same time; with more than 19, shelves can run empty
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..20))]
    customers: u32,

    /// Every deadline and lease of the shop (200 and 400 ms) is longer by this factor, and so
    /// is every hold: a busy machine must not be taken for a deadline that passed
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    slower: u32,

    /// By how much, in milliseconds, an event may overtake another: more than the debugger's
    /// latency, less than most holds
    #[arg(long, default_value_t = 100)]
    tolerated_ms: u64,
}

/// What became of it.
#[derive(Serialize)]
struct Outcome {
    seed: u64,
    seconds: f64,
    traffic: TrafficReport,
    debugging: Tally,
    session: SessionView,
    order: Order,
    memory: Vec<Growth>,
}

/// Prints what became of it; true if all goals are met.
pub fn run(args: &SoakArgs, json: bool) -> bool {
    let lasts = Duration::try_from_secs_f64(args.minutes * 60.0).unwrap_or_default();
    let ran = Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| runtime.block_on(soak(args, lasts)));
    let outcome = match ran {
        Ok(outcome) => outcome,
        Err(error) => {
            eprintln!("soak, seed {}: {error}", args.seed);
            return false;
        }
    };
    if json {
        print_json(&outcome);
    } else {
        print(&outcome);
    }
    let mut verdicts = about_the_program(&outcome);
    verdicts.extend(about_the_order(&outcome.order, args.tolerated_ms));
    match lasts >= TELLING {
        true => verdicts.extend(outcome.memory.iter().map(about_memory)),
        false => skipped("memory", "a run of less than two minutes does not tell", json),
    }
    report(&verdicts, json)
}

async fn soak(args: &SoakArgs, lasts: Duration) -> io::Result<Outcome> {
    let began = Instant::now();
    let mut central = Central::start().await?;
    let dir = tempfile::Builder::new().prefix("ddbx-soak-").tempdir()?;
    let hold_max = Options { slower: args.slower, ..Options::new(dir.path()) }.deadline();
    let hold_max = hold_max * HOLD_DEADLINES_MAX;
    let (record, session) = (Record::Events, central.address.clone());
    let mut shop = Shop::planned(Plan { record, slower: args.slower, session, dir })?;
    let customers = shop.customers(args.customers)?;
    let services = shop.services().map(|(name, pid)| (name.to_owned(), pid));
    let others = [("central".to_owned(), central.pid()), ("traffic".to_owned(), customers.pid())];
    let watch = Watch::start(services.chain(others).collect(), lasts / SAMPLES);

    until_orders_flow(&mut central).await?;
    let mut script = Script::new(args.seed, hold_max);
    let debugging = Debugging::new(&mut central).follow(&mut script, lasts).await?;
    sleep(LAST_WORDS).await;
    let memory = watch.growth()?;
    let session = central.view().await?;
    let traffic = customers.go_home()?;
    let recording = shop.close()?;
    let order = Order::of_recording(&recording, Duration::from_millis(args.tolerated_ms))?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(Outcome { seed: args.seed, seconds, traffic, debugging, session, order, memory })
}

/// Waits until all connections are there: what is first made while somebody is held may come
/// too late for the order of events, and that is known.
async fn until_orders_flow(central: &mut Central) -> io::Result<()> {
    let began = Instant::now();
    loop {
        let Reply::Processes(views) = central.ask(&Request::Processes).await? else {
            return Err(io::Error::other("nobody says who takes part"));
        };
        let served = |name: &str| views.iter().find(|v| v.name == name).map_or(0, |v| v.served);
        if ddbx_shop::services().iter().all(|service| served(service) >= ORDERS_FIRST) {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            return Err(io::Error::other("no orders are placed"));
        }
        sleep(Duration::from_millis(20)).await;
    }
}

fn about_the_program(outcome: &Outcome) -> Vec<Verdict> {
    let Outcome { traffic, debugging, session, .. } = outcome;
    let none = |what: &str, number: u64| at_most(what, number as f64, 0.0);
    // Nobody answered: that is no good sign either.
    let answered = |number: Option<u64>| number.map_or(f64::NAN, |number| number as f64);
    vec![
        at_least("orders taken", traffic.ok as f64, 1.0),
        at_least("breakpoints hit", debugging.hits as f64, 1.0),
        none("orders that ran out of time", traffic.deadline_errors),
        none("orders refused", traffic.refused),
        none("orders that failed otherwise", traffic.other_errors),
        at_most("leases lost", answered(traffic.leases_lost), 0.0),
        at_most("items sold that were not there", answered(traffic.oversold), 0.0),
        none("conditions that could not be evaluated", debugging.condition_errors),
        none("processes missing at the end", 6u64.abs_diff(session.processes)),
        // The customers are still there when it is asked.
        none("processes lost meanwhile", session.left),
        none("what the debugger had no room for", session.dropped.total()),
        none("times that order was given up", u64::from(!session.order_guaranteed)),
    ]
}

fn about_the_order(order: &Order, tolerated_ms: u64) -> Vec<Verdict> {
    let overtaken = format!("events overtaken by more than {tolerated_ms} ms");
    vec![
        known("events recorded", order.events as f64),
        at_most("entries missing in the recording", order.missing as f64, 0.0),
        at_most("mistakes in the recording", order.wrong as f64, 0.0),
        at_most(overtaken, order.overtaken as f64, 0.0),
        known("the most that an event was overtaken by, ms", order.most_ms),
    ]
}

fn about_memory(growth: &Growth) -> Verdict {
    let what = format!("{}, MiB grown after warming up", growth.process);
    at_most(what, growth.grown_mib(), growth.allowed_mib())
}

fn print(outcome: &Outcome) {
    let Outcome { seed, seconds, traffic, debugging, order, memory, .. } = outcome;
    println!("seed {seed}, {seconds:.0} seconds in all");
    println!("customers  {traffic}");
    println!("debugger   {debugging:?}");
    for case in &order.cases {
        println!("order      {case}");
    }
    println!("{:<12} {:>44} {:>8}", "MiB", "in each fifth of the run", "KiB/min");
    for Growth { process, mib, kib_per_minute } in memory {
        let mib: String = mib.iter().map(|mib| format!(" {mib:>8.2}")).collect();
        println!("{process:<11} {mib} {kib_per_minute:>8.1}");
    }
}
