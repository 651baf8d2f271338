//! What calls notice of somebody who is held and cannot reach them.
//!
//! Two pairs of processes are in one session and know nothing of each other. Windows of the
//! one are measured while a call of the other stands at a breakpoint, and while none does.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use ddbx_protocol::control::{Reply, Request, Wanted};
use tokio::runtime::Builder;

use crate::peers::{Flavor, Lane, Method, Transport};
use crate::rpc::abba::{Cell, Rounds, Row};
use crate::rpc::pair::{Pair, Setup};
use crate::session::OpenSession;
use crate::verdict::{at_least, known, report};

const CELL: Cell = cell(64);
/// The call that is held.
const HELD: Cell = cell(1);

const fn cell(outstanding: usize) -> Cell {
    let (flavor, transport, method) = (Flavor::MultiThread, Transport::Tcp, Method::Echo);
    Cell { flavor, transport, method, outstanding }
}

/// The second server of the session.
const BREAKPOINT: &str = "server#2:Peer.echo@arrive";

const PATIENCE: Duration = Duration::from_secs(30);
const RATIO_MIN: f64 = 0.97;

/// How to measure.
#[derive(Args)]
pub struct HoldsArgs {
    /// How long
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
}

/// Prints the table; true if the goal is met.
pub fn run(args: &HoldsArgs, json: bool) -> bool {
    let (null, held) = match measure(Duration::from_secs(args.seconds)) {
        Ok(rows) => rows,
        Err(error) => {
            eprintln!("holds: {error}");
            return false;
        }
    };
    let (throughput, chance) = (held.throughput.median, null.throughput.doubt());
    let verdicts = [
        known("before, calls/s", null.calls_per_second),
        known("nobody held, throughput over before (null)", null.throughput.median)
            .give_or_take(chance)
            .ratio(),
        at_least("somebody held elsewhere, throughput over before", throughput, RATIO_MIN)
            .give_or_take(chance)
            .ratio(),
        known("nobody held, CPU µs added per call (null)", null.cpu_micros_added.median)
            .give_or_take(null.cpu_micros_added.doubt()),
        known("somebody held elsewhere, CPU µs added per call", held.cpu_micros_added.median)
            .give_or_take(null.cpu_micros_added.doubt()),
        known("nobody held, p99 over before (null)", null.p99.median)
            .give_or_take(null.p99.doubt())
            .ratio(),
        known("somebody held elsewhere, p99 over before", held.p99.median)
            .give_or_take(null.p99.doubt())
            .ratio(),
    ];
    report(&verdicts, json)
}

fn measure(lasts: Duration) -> io::Result<(Row, Row)> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let session = OpenSession::open(&runtime)?;
    let setup = Setup { session: Some(session.address.clone()), ..Setup::default() };
    let mut near = Pair::start(&setup)?;
    let mut elsewhere = Pair::start(&setup)?;
    let (mut null, mut held) = (Rounds::new("nobody held", CELL), Rounds::new("held", CELL));
    let window = CELL.window(Lane::Wrapped);
    let began = Instant::now();
    while began.elapsed() < lasts {
        null.push([
            near.window(&window)?,
            near.window(&window)?,
            near.window(&window)?,
            near.window(&window)?,
        ]);
        let before = near.window(&window)?;
        hold(&session, &mut elsewhere)?;
        let during = [near.window(&window)?, near.window(&window)?];
        session.session.continue_all();
        elsewhere.end()?;
        held.push([before, during[0], during[1], near.window(&window)?]);
    }
    Ok((null.row(), held.row()))
}

/// Returns when a call stands.
fn hold(session: &OpenSession, pair: &mut Pair) -> io::Result<()> {
    let wanted = Wanted { spec: BREAKPOINT.to_owned(), ..Wanted::default() };
    session.session.plant(wanted, None).map_err(io::Error::other)?;
    pair.begin(&HELD.window(Lane::Wrapped))?;
    let began = Instant::now();
    loop {
        let view = session.session.request(Request::Session);
        if matches!(&view, Some(Reply::Session(view)) if view.held > 0) {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            return Err(io::Error::other(format!("nobody stands at {BREAKPOINT}: {view:?}")));
        }
        thread::sleep(Duration::from_millis(1));
    }
}
