//! What a call between processes costs: bare, wrapped, in a session, recorded.
//!
//! Client and server are processes of their own, on one core. Both have all variants that
//! their environment allows at the same time, so that windows of two variants can take turns
//! in one pair of processes; and after some rounds another pair goes on, for what differs between
//! two runs of a program is not the same for two variants.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, fs};

use clap::Args;
use ddbx_protocol::Mode;
use tokio::runtime::{Builder, Runtime};

use crate::peers::{Flavor, Method, Transport, pin};
use crate::session::OpenSession;
use crate::stats::Spread;
use crate::verdict::{print_json, report, skipped};

pub mod abba;
mod goals;
mod others;
pub mod pair;
mod roles;
pub mod variants;

use abba::{Cell, Contrast, Rounds, Row};
use others::{CONSOLE, OTLP, Sink};
pub use roles::{client, server};
use variants::{Group, NULL};

const ROUNDS_MIN: usize = 12;

/// After so many rounds other processes go on.
const ROUNDS_OF_PROCESSES: usize = 4;

/// What the goals are about comes first.
const CELLS: [Cell; 16] = [
    cell(Flavor::MultiThread, Transport::Tcp, Method::Echo, 64),
    cell(Flavor::MultiThread, Transport::Tcp, Method::Echo, 1),
    cell(Flavor::CurrentThread, Transport::Tcp, Method::Echo, 64),
    cell(Flavor::CurrentThread, Transport::Tcp, Method::Echo, 1),
    cell(Flavor::MultiThread, Transport::Tcp, Method::Put, 64),
    cell(Flavor::MultiThread, Transport::Tcp, Method::Put, 1),
    cell(Flavor::MultiThread, Transport::Unix, Method::Echo, 64),
    cell(Flavor::MultiThread, Transport::Unix, Method::Echo, 1),
    cell(Flavor::MultiThread, Transport::Unix, Method::Put, 64),
    cell(Flavor::MultiThread, Transport::Unix, Method::Put, 1),
    cell(Flavor::MultiThread, Transport::Memory, Method::Echo, 64),
    cell(Flavor::MultiThread, Transport::Memory, Method::Echo, 1),
    cell(Flavor::MultiThread, Transport::Memory, Method::Put, 64),
    cell(Flavor::MultiThread, Transport::Memory, Method::Put, 1),
    cell(Flavor::CurrentThread, Transport::Memory, Method::Echo, 64),
    cell(Flavor::CurrentThread, Transport::Memory, Method::Echo, 1),
];

const fn cell(flavor: Flavor, transport: Transport, method: Method, outstanding: usize) -> Cell {
    Cell { flavor, transport, method, outstanding }
}

/// How to measure.
#[derive(Args)]
pub struct RpcArgs {
    /// How long at the most, in all
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,

    /// Only cells whose names contain this, such as tcp/echo/64
    #[arg(long, default_value = "")]
    only: String,

    /// Only variants whose names contain this, such as idle; the null row is always there
    #[arg(long, default_value = "")]
    variant: String,
}

/// Prints the table; true if all goals are met.
pub fn run(args: &RpcArgs, json: bool) -> bool {
    match measure(args, json) {
        Ok(rows) => report(&goals::verdicts(&rows), json),
        Err(error) => {
            eprintln!("rpc: {error}");
            false
        }
    }
}

/// Where the rows of the last run are, one line of JSON each.
pub fn results() -> io::Result<PathBuf> {
    Ok(env::current_exe()?.with_file_name("ddbx-bench-rpc.jsonl"))
}

fn measure(args: &RpcArgs, json: bool) -> io::Result<Vec<Row>> {
    let cells: Vec<Cell> =
        CELLS.into_iter().filter(|cell| cell.name().contains(&args.only)).collect();
    if cells.is_empty() {
        return Err(io::Error::other(format!("no cell is called {:?}", args.only)));
    }
    let mut table = Table { args, json, cells, file: fs::File::create(results()?)?, rows: vec![] };
    let (_runtime, session, asked) = sessions()?;
    let lasts = Duration::from_secs(args.seconds);
    table.measure(variants::ours(&session, &asked)?, lasts * 4 / 5)?;
    let sink = Sink::open()?;
    for other in [&OTLP, &CONSOLE] {
        match variants::other(other, &sink)? {
            Some(group) => table.measure(group, lasts / 10)?,
            None => skipped(other.name, &format!("not built; {}", other.build), json),
        }
    }
    let has_spans = table.rows.iter().any(|row| row.variant == OTLP.name);
    if has_spans && sink.received() == 0 {
        return Err(io::Error::other("no span has come to the collector: OTLP is not measured"));
    }
    Ok(table.rows)
}

/// A session with nothing to do and one that is asked, on the core on which calls are measured:
/// whatever they start is there too.
fn sessions() -> io::Result<(Runtime, OpenSession, OpenSession)> {
    pin::on_one_core(|| {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let session = OpenSession::open(&runtime)?;
        let asked = OpenSession::open_in(Mode::Ask, &runtime)?;
        Ok((runtime, session, asked))
    })
}

/// What is to be measured, and what was.
struct Table<'a> {
    args: &'a RpcArgs,
    json: bool,
    cells: Vec<Cell>,
    file: fs::File,
    rows: Vec<Row>,
}

impl Table<'_> {
    fn measure(&mut self, mut group: Group<'_>, lasts: Duration) -> io::Result<()> {
        let began = Instant::now();
        for (nth, cell) in self.cells.iter().enumerate() {
            // The first three are what the goals are about: they get most of the time.
            let cells_left = self.cells.len() - nth;
            let share = if nth < 3 { cells_left.min(5 - nth) } else { cells_left };
            let until = Instant::now() + lasts.saturating_sub(began.elapsed()) / share as u32;
            let rows = measure_cell(&mut group, *cell, &self.args.variant, until)?;
            for row in &rows {
                writeln!(self.file, "{}", serde_json::to_string(row)?)?;
            }
            match self.json {
                true => rows.iter().for_each(print_json),
                false => print(&rows),
            }
            self.rows.extend(rows);
        }
        Ok(())
    }
}

/// Rounds go on until what has a goal is clear, or time is up.
fn measure_cell(
    group: &mut Group<'_>,
    cell: Cell,
    variant: &str,
    until: Instant,
) -> io::Result<Vec<Row>> {
    let is_wanted = |name: &str| name == NULL || name.contains(variant);
    let wanted = group.contrasts.iter().filter(|contrast| is_wanted(contrast.name));
    let begun = wanted.map(|contrast| (contrast, Rounds::new(contrast.name, cell)));
    let mut contrasts: Vec<(&Contrast, Rounds)> = begun.collect();
    if contrasts.is_empty() {
        return Ok(Vec::new());
    }
    let mut order: Vec<usize> = (0..contrasts.len()).collect();
    for round in 1.. {
        fastrand::shuffle(&mut order);
        if round > 1 && round % ROUNDS_OF_PROCESSES == 1 {
            group.start_anew()?;
        }
        for nth in &order {
            let (contrast, rounds) = &mut contrasts[*nth];
            rounds.measure(contrast, &mut group.pairs)?;
        }
        let is_clear = || contrasts.iter().all(|(_, rounds)| goals::is_clear(&rounds.row()));
        let is_over = round >= ROUNDS_MIN && is_clear();
        if is_over || Instant::now() >= until {
            break;
        }
    }
    Ok(contrasts.iter().map(|(_, rounds)| rounds.row()).collect())
}

fn print(rows: &[Row]) {
    let Some(first) = rows.first() else { return };
    println!(
        "{:<26} {:>8}  {:<21} {:>8}  {:<21} {:>7} {:>7}",
        format!("{}, {} rounds", first.cell, first.throughput.rounds),
        "calls/s",
        "over bare (quartiles)",
        "p50 µs",
        "over bare (quartiles)",
        "CPU µs",
        "added"
    );
    for row in rows {
        let ratio = |ratio: &Spread| {
            format!("{:.3} ({:.3}, {:.3})", ratio.median, ratio.quartile, ratio.upper_quartile)
        };
        println!(
            "{:<26} {:>8.0}  {:<21} {:>8.1}  {:<21} {:>7.2} {:>7.2}",
            row.variant,
            row.calls_per_second,
            ratio(&row.throughput),
            row.p50_micros,
            ratio(&row.p50),
            row.cpu_micros,
            row.cpu_micros_added.median
        );
    }
}
