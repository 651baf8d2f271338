//! A shop in a session, as others would run it: every service is a process, namely this
//! same program, started once more. Services end when their standard input does, so also
//! when this program is killed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout};
use std::time::{Duration, Instant};
use std::{io, process, thread};

use clap::Args;
use ddbx_shop::{Load, Options, TrafficReport};
use tokio::runtime::Runtime;

use crate::again::again;
use crate::peers::server::until_stdin_ends;
use crate::session::OpenSession;
use crate::usage::cpu;

/// The machine may be busy with other things, and an order that fails early is no order.
const SLOWER: &str = "20";

/// One process of the shop.
#[derive(Args)]
pub struct RoleArgs {
    /// One of the services, or traffic
    pub role: String,

    /// How long there is traffic, in milliseconds
    #[arg(long, default_value_t = 0)]
    lasts_ms: u64,

    /// How often each customer buys, instead
    #[arg(long)]
    purchases: Option<u32>,

    /// End when told by a signal, not when standard input does
    #[arg(long)]
    until_told: bool,
}

/// What is written down of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// Nothing.
    Nothing,
    /// What `DDBX_RECORD` alone gives.
    Events,
    /// What `ddbx run --record` gives: one control of a process runs at a time.
    Exactly,
}

/// The services and their session; all of it ends when this is dropped.
pub struct Shop {
    services: Vec<Child>,
    /// How many customers' processes there have been.
    crowds: u32,
    record: Record,
    session: OpenSession,
}

/// What became of some traffic.
pub struct Window {
    pub orders_per_second: f64,
    /// Of the services and the customers.
    pub cpu_per_order: Duration,
}

impl Shop {
    /// Starts everything; returns when customers can come.
    pub fn open(record: Record, runtime: &Runtime) -> io::Result<Self> {
        let session = OpenSession::open(runtime)?;
        let mut shop = Self { services: Vec::new(), crowds: 0, record, session };
        for service in ddbx_shop::services() {
            let child = shop.start(service, service, 0)?;
            shop.services.push(child);
            let door = shop.dir().join(format!("{service}.addr"));
            let began = Instant::now();
            while !door.exists() {
                let is_late = began.elapsed() > Duration::from_secs(30);
                assert!(!is_late, "{service} does not open; what it printed is above");
                thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(shop)
    }

    /// Lets customers buy for so long, without pauses.
    pub fn window(&mut self, length: Duration) -> io::Result<Window> {
        let before = self.services_cpu()?;
        self.crowds += 1;
        let name = format!("traffic-{}", self.crowds);
        let mut customers = self.start(&name, "traffic", length.as_millis())?;
        let report = said(customers.stdout.take())?;
        // They stay until they are told to go, so that it is known what they have used.
        let cpu = self.services_cpu()? - before + cpu(customers.id())?;
        drop(customers.stdin.take());
        customers.wait()?;
        assert!(report.ok == report.calls && report.ok > 0, "orders have failed: {report}");
        Ok(Window {
            orders_per_second: report.ok as f64 / length.as_secs_f64(),
            cpu_per_order: cpu.div_f64(report.ok as f64),
        })
    }

    /// Sends all home in good order; where the recording is, if there is one.
    pub fn close(&mut self) -> io::Result<PathBuf> {
        for mut service in self.services.drain(..) {
            drop(service.stdin.take());
            service.wait()?;
        }
        Ok(self.recording())
    }

    fn dir(&self) -> &Path {
        self.session.dir.path()
    }

    fn recording(&self) -> PathBuf {
        self.dir().join("recording")
    }

    fn start(&self, name: &str, role: &str, lasts_ms: u128) -> io::Result<Child> {
        let mut command = again(["shop", role, "--lasts-ms", &lasts_ms.to_string()])?;
        if self.record != Record::Nothing {
            command.env("DDBX_RECORD", self.recording());
        }
        if self.record == Record::Exactly {
            command.env("DDBX_EXACT", "1");
        }
        command
            .env("DDBX_SESSION", self.session.address.to_string())
            .env("DDBX_PROCESS", name)
            .env("SHOP_DIR", self.dir())
            .env("SHOP_SLOWER", SLOWER)
            .spawn()
    }

    fn services_cpu(&self) -> io::Result<Duration> {
        self.services.iter().map(|service| cpu(service.id())).sum()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        for mut service in self.services.drain(..) {
            let _ = service.kill();
            let _ = service.wait();
        }
    }
}

/// The last word of customers.
fn said(by: Option<ChildStdout>) -> io::Result<TrafficReport> {
    let mut line = String::new();
    BufReader::new(by.ok_or(io::ErrorKind::BrokenPipe)?).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(io::Error::other)
}

/// Runs one process of the shop until standard input ends.
pub fn run(args: &RoleArgs) -> Result<(), ddbx_shop::Error> {
    let options = Options::from_env()?;
    let runtime = Runtime::new().expect("a runtime");
    if args.role == "traffic" {
        let purchases = args.purchases;
        let lasts = purchases.is_none().then(|| Duration::from_millis(args.lasts_ms));
        let load = Load { lasts, purchases, pauses: false, ..Load::default() };
        println!("{}", runtime.block_on(ddbx_shop::traffic(&options, &load, |_| {}))?);
        until_stdin_ends();
        return Ok(());
    }
    if !args.until_told {
        thread::spawn(|| {
            until_stdin_ends();
            process::exit(0);
        });
    }
    runtime.block_on(ddbx_shop::run(&args.role, &options))
}
