//! What recording costs the shop: orders per second, processor time, bytes.
//!
//! One shop for each variant, all there all the time; customers come to one after the
//! other, in a new order in every round, so that a machine that is slower for a while is so
//! for all. A second shop without a recording shows what chance does.

use std::io;
use std::time::Duration;

use clap::Args;
use ddbx_recording::{Recording, verify};
use serde::Serialize;
use tokio::runtime;

use crate::shop::{Record, Shop, Window};
use crate::stats::{self, Spread};
use crate::verdict::{at_least, at_most, print_json, report};

const VARIANTS: [(&str, Record); 4] = [
    ("off", Record::Nothing),
    ("off again", Record::Nothing),
    ("recorded", Record::Events),
    ("recorded exactly", Record::Exactly),
];

const RATIO_MIN: f64 = 0.9;
const BYTES_PER_EVENT_MAX: f64 = 16.0;

/// How to measure.
#[derive(Args)]
pub struct RecordingArgs {
    /// How often customers come to every shop
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// How long they stay, in milliseconds
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u64).range(1..))]
    window_ms: u64,
}

#[derive(Serialize)]
struct Row {
    variant: &'static str,
    orders_per_second: f64,
    /// To what was measured in the same round with recording off, in both shops.
    throughput: Spread,
    cpu_micros_per_order: f64,
    cpu: Spread,
    recorded: Option<Recorded>,
}

#[derive(Serialize)]
struct Recorded {
    bytes_per_event: f64,
    /// Of the process that has most of them, while there are customers.
    events_per_second: f64,
    missing: u64,
}

/// Prints the table; true if all goals are met.
pub fn run(args: &RecordingArgs, json: bool) -> bool {
    let rows = measure(args).expect("a shop that can be recorded");
    if json {
        rows.iter().for_each(print_json);
    } else {
        print(&rows);
    }
    let [_, _, plain, exact] = &rows;
    let recorded = |row: &Row, of: fn(&Recorded) -> f64| row.recorded.as_ref().map_or(0.0, of);
    let missing = |row| recorded(row, |recorded| recorded.missing as f64);
    let bytes = |row| recorded(row, |recorded| recorded.bytes_per_event);
    let verdicts = [
        at_least("throughput, recorded over off", plain.throughput.median, RATIO_MIN).ratio(),
        at_least("throughput, recorded exactly over off", exact.throughput.median, RATIO_MIN)
            .ratio(),
        at_most("bytes per event, recorded", bytes(plain), BYTES_PER_EVENT_MAX),
        at_most("bytes per event, recorded exactly", bytes(exact), BYTES_PER_EVENT_MAX),
        at_most("entries lost", missing(plain) + missing(exact), 0.0),
    ];
    report(&verdicts, json)
}

fn measure(args: &RecordingArgs) -> io::Result<[Row; 4]> {
    // For the debuggers, who have nothing to do.
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let shops = VARIANTS.map(|(_, record)| Shop::open(record, &runtime));
    let mut shops: Vec<Shop> = shops.into_iter().collect::<io::Result<_>>()?;
    let length = Duration::from_millis(args.window_ms);
    for shop in &mut shops {
        shop.window(length)?;
    }
    let mut windows: [Vec<Window>; 4] = Default::default();
    let mut order = [0, 1, 2, 3];
    for _ in 0..args.rounds {
        fastrand::shuffle(&mut order);
        for variant in order {
            windows[variant].push(shops[variant].window(length)?);
        }
    }
    let traffic = length * (args.rounds + 1);
    let mut rows = Vec::new();
    let off = [&windows[0][..], &windows[1][..]];
    for ((variant, record), (shop, own)) in VARIANTS.iter().zip(shops.iter_mut().zip(&windows)) {
        let recording = shop.close()?;
        let is_recorded = *record != Record::Nothing;
        let recorded = is_recorded.then(|| Recorded::read(&recording, traffic)).transpose()?;
        rows.push(Row {
            variant,
            orders_per_second: median(own, |window| window.orders_per_second),
            throughput: ratio(own, off, |window| window.orders_per_second),
            cpu_micros_per_order: median(own, |window| window.cpu_per_order.as_secs_f64() * 1e6),
            cpu: ratio(own, off, |window| window.cpu_per_order.as_secs_f64()),
            recorded,
        });
    }
    rows.try_into().map_err(|_| io::ErrorKind::Other.into())
}

impl Recorded {
    fn read(directory: &std::path::Path, traffic: Duration) -> io::Result<Self> {
        let recording = Recording::open(directory).map_err(io::Error::other)?;
        let verification = verify(&recording);
        assert!(verification.is_sound(), "a bad recording: {:?}", verification.findings);
        let logs = &verification.logs;
        let events: u64 = logs.iter().map(|log| log.events).sum();
        let most = logs.iter().map(|log| log.events).max().unwrap_or_default();
        Ok(Self {
            bytes_per_event: recording.bytes()? as f64 / events as f64,
            events_per_second: most as f64 / traffic.as_secs_f64(),
            missing: logs.iter().map(|log| log.missing).sum(),
        })
    }
}

/// To what was measured in the same round with recording off, in both shops.
fn ratio(windows: &[Window], off: [&[Window]; 2], of: fn(&Window) -> f64) -> Spread {
    let mean = off[0].iter().zip(off[1]).map(|(one, other)| f64::midpoint(of(one), of(other)));
    Spread::of(windows.iter().zip(mean).map(|(window, mean)| of(window) / mean))
}

fn median(windows: &[Window], of: fn(&Window) -> f64) -> f64 {
    stats::median(windows.iter().map(of))
}

fn print(rows: &[Row]) {
    println!(
        "{:<16} {:>8}  {:<20} {:>8}  {:<20} {:>11} {:>8} {:>7}",
        "",
        "orders/s",
        "over off (quartiles)",
        "CPU µs",
        "over off (quartiles)",
        "bytes/event",
        "events/s",
        "missing"
    );
    let ratio = |ratio: &Spread| {
        format!("{:.3} ({:.3}, {:.3})", ratio.median, ratio.quartile, ratio.upper_quartile)
    };
    for row in rows {
        let Row { variant, orders_per_second, throughput, cpu_micros_per_order, cpu, .. } = row;
        let recorded = row.recorded.as_ref().map(|recorded| {
            let Recorded { bytes_per_event, events_per_second, missing } = recorded;
            format!(" {bytes_per_event:>11.2} {events_per_second:>8.0} {missing:>7}")
        });
        println!(
            "{variant:<16} {orders_per_second:>8.0}  {:<20} {cpu_micros_per_order:>8.0}  {:<20}{}",
            ratio(throughput),
            ratio(cpu),
            recorded.unwrap_or_default()
        );
    }
}
