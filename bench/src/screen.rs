//! What the screen costs: at rest, and with many processes in which much happens.
//!
//! The session is in this process, and so are the satellites of all processes; the screen is
//! this same program, started once more on a terminal of its own. Only what that process
//! uses is counted, and what a machine has to do besides disturbs that little.

use std::io;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use ddbx_protocol::control::{Reply, Request, Wanted};
use ddbx_protocol::link::{Address, Keys};
use serde::Serialize;
use tokio::runtime;

use crate::session::OpenSession;
use crate::usage::{cpu, memory};
use crate::verdict::{at_least, at_most, print_json, report};

mod crowd;
mod terminal;

use crowd::{Crowd, Traffic};
use terminal::Terminal;

const AT_REST: Traffic = Traffic { processes: 9, events_per_second: 0 };
const BUSY: Traffic = Traffic { processes: 100, events_per_second: 10_000 };

const AT_REST_MAX: f64 = 5.0;
const BUSY_MAX: f64 = 30.0;
const MEMORY_MIB_MAX: f64 = 100.0;
/// A machine may be so busy that nobody runs for a while.
const MISSED_MAX: f64 = 1.0;

/// As long as caches and logs are not full, less is done than later.
const WARM_UP: Duration = Duration::from_secs(4);

/// The screens that are measured: their name, their key, and what is only there, one or the other.
/// (News may stand where the keys are, again and again.)
const SCREENS: [(&str, char, &[&str]); 4] = [
    ("Processes", '1', &["rate/s"]),
    ("Holds", '2', &["hold process"]),
    ("Space-time", '5', &["+ - zoom", "leaves ▼▲ arrives"]),
    ("Events", '6', &["no. what"]),
];

/// How to measure.
#[derive(Args)]
pub struct ScreenArgs {
    /// How long each screen is looked at
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,

    /// How many columns the terminal has
    #[arg(long, default_value = "120")]
    width: NonZeroU16,

    /// How many lines the terminal has
    #[arg(long, default_value = "40")]
    height: NonZeroU16,
}

/// What to look at.
#[derive(Args)]
pub struct LookArgs {
    /// The address of the session
    session: String,
}

#[derive(Serialize)]
struct Row {
    processes: usize,
    screen: &'static str,
    /// Of one core.
    cpu_percent: f64,
    /// To the terminal.
    bytes_per_second: f64,
    /// That were sent to the session.
    events_per_second: f64,
    /// As the screen says.
    events_missed: u64,
    memory_mib: f64,
}

/// Prints the table; true if all goals are met.
pub fn run(args: &ScreenArgs, json: bool) -> bool {
    let measured = |traffic| measure(args, traffic).expect("a screen on a terminal");
    let (rest, busy) = (measured(AT_REST), measured(BUSY));
    if json {
        rest.iter().chain(&busy).for_each(print_json);
    } else {
        print(rest.iter().chain(&busy));
    }
    let most = |rows: &[Row], of: fn(&Row) -> f64| rows.iter().map(of).fold(0.0, f64::max);
    let arrived = busy.iter().map(|row| row.events_per_second).fold(f64::INFINITY, f64::min);
    let sent: f64 = busy.iter().map(|row| row.events_per_second * args.seconds as f64).sum();
    let missed: u64 = busy.iter().map(|row| row.events_missed).sum();
    let verdicts = [
        at_most("at rest, % of a core", most(&rest, |row| row.cpu_percent), AT_REST_MAX),
        at_most("busy, % of a core", most(&busy, |row| row.cpu_percent), BUSY_MAX),
        at_least("busy, events/s sent", arrived, 0.95 * BUSY.events_per_second as f64),
        at_most("busy, % of events missed", missed as f64 / sent * 100.0, MISSED_MAX),
        at_most("busy, memory in MiB", most(&busy, |row| row.memory_mib), MEMORY_MIB_MAX),
    ];
    report(&verdicts, json)
}

fn measure(args: &ScreenArgs, traffic: Traffic) -> io::Result<Vec<Row>> {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let open = OpenSession::open(&runtime)?;
    let wanted = Wanted { spec: "*:Inventory.reserve@arrive".to_owned(), ..Wanted::default() };
    let Some(Reply::Breakpoint(breakpoint)) = open.session.request(Request::Break(wanted)) else {
        return Err(io::Error::other("the breakpoint is not set"));
    };
    let crowd = Arc::new(Crowd::new(traffic));
    runtime.block_on(async { crowd.start(&open.address, breakpoint.id) });
    let mut terminal = Terminal::start(&open.address, args.width, args.height)?;
    terminal.until(&["gateway-00"]);
    thread::sleep(WARM_UP);
    let mut missed_before = 0;
    let mut rows = Vec::new();
    for (screen, key, only_there) in SCREENS {
        terminal.press(key)?;
        terminal.until(only_there);
        let pid = terminal.pid()?;
        let (began, used, bytes) = (Instant::now(), cpu(pid)?, terminal.bytes());
        let sent = crowd.sent();
        thread::sleep(Duration::from_secs(args.seconds));
        let length = began.elapsed().as_secs_f64();
        let missed_so_far = missed(&terminal.text());
        rows.push(Row {
            processes: traffic.processes,
            screen,
            cpu_percent: (cpu(pid)? - used).as_secs_f64() / length * 100.0,
            bytes_per_second: (terminal.bytes() - bytes) as f64 / length,
            events_per_second: (crowd.sent() - sent) as f64 / length,
            events_missed: missed_so_far - missed_before,
            memory_mib: memory(pid)? as f64 / f64::from(1 << 20),
        });
        missed_before = missed_so_far;
    }
    drop(terminal);
    // Nobody shall be surprised by the end of the others.
    runtime.shutdown_background();
    Ok(rows)
}

/// What the status line says about what did not get there.
fn missed(shown: &str) -> u64 {
    let before = shown.split(" events missed").next().filter(|before| *before != shown);
    let number = before.and_then(|before| before.rsplit(' ').next());
    number.map_or(0, |number| number.parse().expect("a number of events"))
}

fn print<'a>(rows: impl Iterator<Item = &'a Row>) {
    println!(
        "{:>9}  {:<10} {:>6} {:>8} {:>8} {:>7} {:>7}",
        "processes", "screen", "CPU %", "bytes/s", "events/s", "missed", "MiB"
    );
    for row in rows {
        let Row { processes, screen, cpu_percent, bytes_per_second, .. } = row;
        println!(
            "{processes:>9}  {screen:<10} {cpu_percent:>6.2} {bytes_per_second:>8.0} \
             {:>8.0} {:>7} {:>7.1}",
            row.events_per_second, row.events_missed, row.memory_mib
        );
    }
}

/// Is the screen that is measured.
pub fn look(args: &LookArgs) -> Result<(), Box<dyn std::error::Error>> {
    let address = Address::parse(&args.session)?;
    let options =
        ddbx_tui::Options { address, keys: Keys::default(), watch_only: false, printed: None };
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(ddbx_tui::run(options))?)
}
