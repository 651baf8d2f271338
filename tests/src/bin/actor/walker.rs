//! Walks: calls that go through as many processes as they are told to.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, io};

use ddbx::{Client, Process};
use ddbx_tests::faults::told::{Moment, Progress};
use futures::StreamExt as _;
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tarpc::client::{self, RpcError};
use tarpc::context::{self, Context};
use tarpc::serde_transport::Transport;
use tarpc::server::{BaseChannel, Channel as _};
use tarpc::tokio_serde::formats::Bincode;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

use super::orders::{self, Orders};
use super::{LOOK_AGAIN, stdin_closed};

#[derive(clap::Args)]
pub(super) struct Args {
    /// What it is called
    name: String,
    /// Where all walkers meet
    dir: PathBuf,
    /// Under which name others find it, if not its own
    #[arg(long)]
    at: Option<String>,
    /// End when standard input closes
    #[arg(long)]
    until_stdin_closes: bool,
    /// Start another walker of this name, and end with it
    #[arg(long, value_name = "NAME")]
    starts: Option<String>,
    /// Read walks and orders from standard input, and print what becomes of them
    #[arg(long)]
    drives: bool,
    /// Print how far each walk has come, and forget others only when told to
    #[arg(long)]
    tells: bool,
    /// End at once, without unwinding, if anything panics
    #[arg(long)]
    aborts: bool,
    /// Make this walk and end: 0 if it went well
    #[arg(long, value_name = "JSON")]
    once: Option<String>,
}

/// One walk, as it is read.
#[derive(Deserialize)]
struct Walk {
    name: String,
    deadline_ms: u64,
    steps: Vec<Step>,
}

/// One process of a walk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Step {
    at: String,
    work_ms: u64,
    /// Whether it waits there for an order, at a point where it can be held.
    #[serde(default)]
    awaits: bool,
}

#[tarpc::service]
trait Walker {
    /// Works as the first step says, then walks the others. How many were walked.
    async fn walk(name: String, steps: Vec<Step>) -> Result<u32, String>;
}

type ToWalker = WalkerClient<Client<WalkerRequest, WalkerResponse>>;

pub(super) async fn play(args: Args) -> ExitCode {
    if args.aborts {
        orders::abort_on_panic();
    }
    let process = ddbx::init(&args.name);
    let walking = Walking {
        process: process.clone(),
        dir: args.dir.clone(),
        peers: Arc::default(),
        walks: Arc::default(),
        orders: Orders::default(),
        tells: args.tells,
    };
    if let Some(walk) = &args.once {
        let walk = serde_json::from_str(walk).expect("a walk");
        return match walking.clone().start(walk).await {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        };
    }
    let _child = args.starts.as_deref().map(|name| start_another(name, &args.dir));
    let ended = tokio::select! {
        ended = serve(&walking, args.at.as_deref().unwrap_or(&args.name)) => ended,
        () = drive(&walking), if args.drives => Ok(()),
        () = stdin_closed(), if args.until_stdin_closes => Ok(()),
    };
    ended.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

/// Another process, with the environment of this one. It ends when its standard input
/// closes, so with this one at the latest.
fn start_another(name: &str, dir: &Path) -> Child {
    let mut command = Command::new(env::current_exe().expect("this program has a path"));
    command.args(["walker", name]).arg(dir).arg("--until-stdin-closes");
    command.stdin(Stdio::piped()).spawn().expect("this program can be started again")
}

async fn serve(walking: &Walking, at: &str) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let path = walking.dir.join(format!("{at}.addr"));
    let draft = path.with_extension("draft");
    fs::write(&draft, listener.local_addr()?.to_string())?;
    fs::rename(&draft, &path)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let channel = BaseChannel::with_defaults(Transport::from((stream, Bincode::default())));
        let calls = channel.execute(walking.process.serve(walking.clone().serve()));
        tokio::spawn(calls.for_each(async |call| drop(tokio::spawn(call))));
    }
}

/// Until standard input closes, or until told to.
async fn drive(walking: &Walking) {
    let mut lines = orders::lines();
    while let Some(line) = lines.recv().await {
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("flush", name) => drop(tokio::spawn(flush(name.to_owned()))),
            ("go", name) => walking.orders.go(name),
            ("panic", name) => walking.orders.panic(name),
            ("forget", name) => {
                let began = Instant::now();
                let (peer, _) = name.split_once('@').unwrap_or((name, ""));
                walking.peers.lock().await.remove(peer);
                tell(name, "ok", began);
            }
            ("choose", "much") => drop(walking.process.spawn("choosing", choose_much())),
            ("die", "flushed") => drop(walking.process.spawn("last", flush_and_die())),
            ("exit", "") => process::exit(7),
            ("return", "") => return,
            _ => {
                let walk: Walk = serde_json::from_str(&line).expect("a walk on a line");
                let name = walk.name.clone();
                walking.process.spawn(&name, walking.clone().start(walk));
            }
        }
    }
}

/// Fills a recording: more than what waits for a full disk at the most.
async fn choose_much() {
    for number in 0..300 {
        ddbx::choice("much", || format!("{number:4000}"));
    }
}

async fn flush(name: String) {
    let began = Instant::now();
    let flushed = ddbx::flush().await;
    let outcome = flushed.map_or_else(|error| error.to_string(), |()| "ok".to_owned());
    tell(&name, &outcome, began);
}

/// Nothing has time to happen by itself after the flush.
async fn flush_and_die() {
    ddbx::point!("last").await;
    flush("last".to_owned()).await;
    kill_process(getpid(), Signal::KILL).expect("a process can end itself");
}

fn tell(name: &str, outcome: &str, began: Instant) {
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    println!("{}", json!({ "name": name, "outcome": outcome, "took_ms": took_ms }));
}

/// What all walks through a process share.
#[derive(Clone)]
struct Walking {
    process: Process,
    dir: PathBuf,
    peers: Arc<Mutex<HashMap<String, ToWalker>>>,
    walks: Arc<AtomicU64>,
    orders: Orders,
    tells: bool,
}

impl Walking {
    /// Says how far a walk has come, if anybody wants to know.
    fn progress(&self, moment: Moment, name: &str) {
        if self.tells {
            Progress::new(moment, name, self.process.name()).print();
        }
    }

    /// Begins a walk here, and says what becomes of it.
    async fn start(self, walk: Walk) -> bool {
        let Walk { name, deadline_ms, steps } = walk;
        let first = steps[0].at.clone();
        let client = self.client(&first).await;
        let began = Instant::now();
        let mut ctx = context::current();
        ctx.deadline = began + Duration::from_millis(deadline_ms);
        let outcome = match client.walk(ctx, name.clone(), steps).await {
            Ok(Ok(_)) => "ok".to_owned(),
            Ok(Err(error)) => error,
            Err(error) => {
                let said = said(&error);
                if said == CUT_OFF && !self.tells {
                    self.peers.lock().await.remove(&first);
                }
                said
            }
        };
        tell(&name, &outcome, began);
        outcome == "ok"
    }

    async fn client(&self, at: &str) -> ToWalker {
        let mut peers = self.peers.lock().await;
        if let Some(client) = peers.get(at) {
            return client.clone();
        }
        let path = self.dir.join(format!("{at}.addr"));
        let stream = loop {
            if let Ok(address) = fs::read_to_string(&path)
                && let Ok(stream) = TcpStream::connect(address).await
            {
                break stream;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        };
        let _ = stream.set_nodelay(true);
        let transport = Transport::from((stream, Bincode::default()));
        let channel = client::new(client::Config::default(), transport).spawn();
        let client = WalkerClient::from(self.process.client(channel));
        peers.insert(at.to_owned(), client.clone());
        client
    }
}

impl Walker for Walking {
    async fn walk(self, ctx: Context, name: String, steps: Vec<Step>) -> Result<u32, String> {
        let walks = self.walks.fetch_add(1, Ordering::Relaxed) + 1;
        ddbx::watch!(walks = walks, last = name);
        self.progress(Moment::Begins, &name);
        let (here, rest) = steps.split_first().ok_or("no steps")?;
        if here.work_ms > 0 {
            ddbx::time::sleep(Duration::from_millis(here.work_ms)).await;
        }
        if here.awaits {
            self.progress(Moment::Awaits, &name);
            let held = async {
                ddbx::point!("held").await;
                self.progress(Moment::Passes, &name);
            };
            tokio::join!(held, self.orders.obeyed(&name));
        }
        ddbx::point!("worked", name = name, steps_left = rest.len()).await;
        self.progress(Moment::Passes, &name);
        let Some(next) = rest.first() else { return Ok(1) };
        let client = self.client(&next.at).await;
        let walked = client.walk(ctx, name.clone(), rest.to_vec()).await;
        self.progress(Moment::Resumes, &name);
        Ok(1 + walked.map_err(|error| said(&error))??)
    }
}

/// What becomes of calls whose server dies, however tarpc learns of it.
const CUT_OFF: &str = "failed: cut off";

fn said(error: &RpcError) -> String {
    match error {
        RpcError::Shutdown | RpcError::Channel(_) => CUT_OFF.to_owned(),
        RpcError::DeadlineExceeded => "deadline".to_owned(),
        RpcError::Server(error) => format!("failed: {error}"),
        other => format!("failed: {other}"),
    }
}
