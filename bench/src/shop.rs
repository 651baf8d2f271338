//! A shop in a session, as others would run it: every service is a process, namely this
//! same program, started once more. Services end when their standard input does, so also
//! when this program is killed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout};
use std::time::{Duration, Instant};
use std::{io, process, thread};

use clap::Args;
use ddbx_central::driver::Session;
use ddbx_protocol::link::Address;
use ddbx_shop::{Load, Options, TrafficReport};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::again::again;
use crate::peers::server::until_stdin_ends;
use crate::session::OpenSession;
use crate::usage::cpu;

/// The machine may be busy with other things, and an order that fails early is no order.
const SLOWER: u32 = 20;

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

    /// So many customers buy and pause until standard input ends, instead
    #[arg(long)]
    customers: Option<u32>,

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

/// What a shop is like.
pub struct Plan {
    pub record: Record,
    /// Every deadline and lease is longer by this factor.
    pub slower: u32,
    /// The session in which all of it takes part.
    pub session: Address,
    /// Where its parts meet, and where the recording is.
    pub dir: TempDir,
}

/// The services, and perhaps their session; all of it ends when this is dropped.
pub struct Shop {
    services: Vec<(&'static str, Child)>,
    /// How many customers' processes there have been.
    crowds: u32,
    plan: Plan,
    _session: Option<Session>,
}

/// What became of some traffic.
pub struct Window {
    pub orders_per_second: f64,
    /// Of the services and the customers.
    pub cpu_per_order: Duration,
}

impl Shop {
    /// Starts everything, in a session of its own; returns when customers can come.
    pub fn open(record: Record, runtime: &Runtime) -> io::Result<Self> {
        let OpenSession { session, address, dir } = OpenSession::open(runtime)?;
        let mut shop = Self::planned(Plan { record, slower: SLOWER, session: address, dir })?;
        shop._session = Some(session);
        Ok(shop)
    }

    /// Starts everything in a session that is there; returns when customers can come.
    pub fn planned(plan: Plan) -> io::Result<Self> {
        let mut shop = Self { services: Vec::new(), crowds: 0, plan, _session: None };
        for service in ddbx_shop::services() {
            let child = shop.start(service, &["shop", service])?;
            shop.services.push((service, child));
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
        let lasts_ms = length.as_millis().to_string();
        let mut customers = self.start(&name, &["shop", "traffic", "--lasts-ms", &lasts_ms])?;
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

    /// So many customers come, who buy and pause until they are told to go home.
    pub fn customers(&self, number: u32) -> io::Result<Customers> {
        let number = number.to_string();
        let child = self.start("traffic", &["shop", "traffic", "--customers", &number])?;
        Ok(Customers(child))
    }

    /// The services, and their numbers in the operating system.
    pub fn services(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.services.iter().map(|(name, child)| (*name, child.id()))
    }

    /// Sends all home in good order; where the recording is, if there is one.
    pub fn close(&mut self) -> io::Result<PathBuf> {
        for (_, mut service) in self.services.drain(..) {
            drop(service.stdin.take());
            service.wait()?;
        }
        Ok(self.recording())
    }

    fn dir(&self) -> &Path {
        self.plan.dir.path()
    }

    fn recording(&self) -> PathBuf {
        self.dir().join("recording")
    }

    fn start(&self, name: &str, args: &[&str]) -> io::Result<Child> {
        let mut command = again(args)?;
        if self.plan.record != Record::Nothing {
            command.env("DDBX_RECORD", self.recording());
        }
        if self.plan.record == Record::Exactly {
            command.env("DDBX_EXACT", "1");
        }
        command
            .env("DDBX_SESSION", self.plan.session.to_string())
            .env("DDBX_PROCESS", name)
            .env("SHOP_DIR", self.dir())
            .env("SHOP_SLOWER", self.plan.slower.to_string())
            .spawn()
    }

    fn services_cpu(&self) -> io::Result<Duration> {
        self.services.iter().map(|(_, service)| cpu(service.id())).sum()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        for (_, mut service) in self.services.drain(..) {
            let _ = service.kill();
            let _ = service.wait();
        }
    }
}

/// Customers who buy until they are told to go home, or this is dropped.
pub struct Customers(Child);

impl Customers {
    /// The number of their process in the operating system.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Tells them to go home; what became of their orders.
    pub fn go_home(mut self) -> io::Result<TrafficReport> {
        drop(self.0.stdin.take());
        let report = said(self.0.stdout.take());
        self.0.wait()?;
        report
    }
}

impl Drop for Customers {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
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
        if let Some(customers) = args.customers {
            let load = Load { customers, until_stdin_closes: true, ..Load::default() };
            println!("{}", runtime.block_on(ddbx_shop::traffic(&options, &load, |_| {}))?);
            return Ok(());
        }
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
