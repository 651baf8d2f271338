//! Very many calls with short deadlines that stand at a breakpoint for much longer: none
//! runs out of time, all are answered, and central remembers them in little room. Central,
//! the callers and the server are processes of their own.

use std::io;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use ddbx_protocol::Scope;
use ddbx_protocol::control::{Reply, Request, SessionView, Wanted, Whom};
use serde::Serialize;
use tokio::runtime::Builder;
use tokio::task::block_in_place;
use tokio::time::sleep;

use crate::again::again;
use crate::rpc::pair::Process;
use crate::scale::Central;
use crate::usage;
use crate::verdict::{at_least, at_most, known, print_json, report};

mod callers;

pub use callers::{CallersArgs, callers};

use callers::Answers;

/// As many as tarpc lets be in flight over one.
const EACH: usize = 1_000;

const BREAKPOINT: &str = "server:Peer.echo@arrive";

const PATIENCE: Duration = Duration::from_secs(120);
const HELD_CALL_KIB_MAX: f64 = 4.0;

/// How to measure.
#[derive(Args)]
pub struct HeldArgs {
    /// How many connections, with 1,000 calls over each
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,

    /// For how long they are held
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,

    /// How long each call may take, in milliseconds
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    deadline_ms: u64,

    /// Whom the breakpoint stops
    #[arg(long, value_enum, default_value_t = Stops::Process)]
    scope: Stops,
}

#[derive(Clone, Copy, ValueEnum)]
enum Stops {
    /// All of the server
    Process,
    /// Each call
    Call,
}

/// What was measured.
#[derive(Serialize)]
struct Held {
    calls: usize,
    held_seconds: f64,
    /// The same calls when nobody is held.
    undisturbed: Answers,
    undisturbed_ms: f64,
    /// From the first call until all of them stand.
    all_stand_ms: f64,
    answers: Answers,
    /// From when they are let go until all are answered.
    release_ms: f64,
    session: SessionView,
    /// Those who still stand in the server then; deadlines that wait elsewhere do not count.
    standing: u64,
    /// Of central.
    bytes_per_call: f64,
    before_mib: f64,
    during_mib: f64,
    after_mib: f64,
    /// How long central takes to answer what people ask, while all stand.
    holds_ms: f64,
    processes_ms: f64,
    calls_ms: f64,
    /// Of the callers and the server, per held call.
    callers_bytes: f64,
    server_bytes: f64,
}

/// Prints what was measured; true if all goals are met.
pub fn run(args: &HeldArgs, json: bool) -> bool {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let measured = runtime.and_then(|runtime| runtime.block_on(measure(args)));
    let held = match measured {
        Ok(held) => held,
        Err(error) => {
            eprintln!("held: {error}");
            return false;
        }
    };
    if json {
        print_json(&held);
    }
    let none = |what: &str, number: u64| at_most(what, number as f64, 0.0);
    let unanswered = held.calls as u64 - held.answers.right;
    let verdicts = [
        known("calls", held.calls as f64),
        known("nobody held, deadline errors (null)", held.undisturbed.deadline_errors as f64),
        known("nobody held, ms until all are answered (null)", held.undisturbed_ms),
        known("ms until all stand", held.all_stand_ms),
        known("held for, seconds", held.held_seconds),
        known("ms from their release until all are answered", held.release_ms),
        at_least("calls that still stand at the end", held.standing as f64, held.calls as f64),
        none("processes that were lost", held.session.left),
        none("deadline errors", held.answers.deadline_errors),
        none("other errors", held.answers.other_errors),
        none("calls without the right answer", unanswered),
        at_most("KiB of central per held call", held.bytes_per_call / 1024.0, HELD_CALL_KIB_MAX),
        known("MiB of central before", held.before_mib),
        known("MiB of central while they stand", held.during_mib),
        known("MiB of central afterwards", held.after_mib),
        known("KiB of the server per held call", held.server_bytes / 1024.0),
        known("KiB of the callers per held call", held.callers_bytes / 1024.0),
        known("ms to list holds while they stand", held.holds_ms),
        known("ms to list processes", held.processes_ms),
        known("ms to list calls", held.calls_ms),
    ];
    if let Some(error) = &held.answers.error {
        eprintln!("held: one of the other errors: {error}");
    }
    report(&verdicts, json)
}

async fn measure(args: &HeldArgs) -> io::Result<Held> {
    let calls = usize::from(args.connections) * EACH;
    let mut central = Central::start().await?;
    let dir = tempfile::Builder::new().prefix("ddbx-bench-").tempdir()?;
    let session = central.address.to_string();
    let mut server = again(["server"])?;
    let mut server = Process::start(server.arg(dir.path()).env("DDBX_SESSION", &session))?;
    let mut callers = again(["callers"])?;
    callers.arg(server.said()?).env("DDBX_SESSION", &session);
    callers.args(["--connections", &args.connections.to_string(), "--each", &EACH.to_string()]);
    callers.args(["--deadline-ms", &args.deadline_ms.to_string()]);
    let mut callers = Process::start(&mut callers)?;
    callers.said()?;

    let (undisturbed, undisturbed_ms) = answers(&mut callers, Instant::now(), true)?;
    let scope = match args.scope {
        Stops::Process => Scope::Process,
        Stops::Call => Scope::Call,
    };
    let wanted = Wanted { spec: BREAKPOINT.to_owned(), scope, ..Wanted::default() };
    central.ask(&Request::Break(wanted)).await?;
    let memory = |pid| io::Result::Ok(usage::memory(pid)? as f64);
    let before = [central.pid(), server.pid(), callers.pid()].map(memory);

    let began = Instant::now();
    callers.tell("call")?;
    all_stand(&mut central, calls).await?;
    let all_stand_ms = millis(began);
    sleep(Duration::from_secs(args.seconds)).await;
    let held_seconds = began.elapsed().as_secs_f64() - all_stand_ms / 1e3;
    let during = [central.pid(), server.pid(), callers.pid()].map(memory);
    let session = central.view().await?;
    let (holds_ms, _) = timed(&mut central, Request::Holds).await?;
    let (processes_ms, processes) = timed(&mut central, Request::Processes).await?;
    let (calls_ms, _) = timed(&mut central, Request::Calls).await?;

    central.ask(&Request::Delete(None)).await?;
    let released = Instant::now();
    central.ask(&Request::Continue(Whom::All)).await?;
    let (answers, release_ms) = block_in_place(|| answers(&mut callers, released, false))?;
    let mib = f64::from(1 << 20);
    let [before, server_before, callers_before] = before;
    let [during, server_during, callers_during] = during;
    let (before, during) = (before?, during?);
    let per_call = |more: f64| more / calls as f64;
    Ok(Held {
        calls,
        held_seconds,
        undisturbed,
        undisturbed_ms,
        all_stand_ms,
        answers,
        release_ms,
        session,
        standing: standing_in("server", &processes),
        bytes_per_call: per_call(during - before),
        before_mib: before / mib,
        during_mib: during / mib,
        after_mib: central.memory_mib()?,
        holds_ms,
        processes_ms,
        calls_ms,
        callers_bytes: per_call(callers_during? - callers_before?),
        server_bytes: per_call(server_during? - server_before?),
    })
}

/// What became of the calls, and how long that took since then.
fn answers(callers: &mut Process, since: Instant, begin: bool) -> io::Result<(Answers, f64)> {
    if begin {
        callers.tell("call")?;
    }
    let answers = serde_json::from_str(&callers.said()?)?;
    Ok((answers, millis(since)))
}

async fn all_stand(central: &mut Central, calls: usize) -> io::Result<()> {
    let began = Instant::now();
    loop {
        let view = central.view().await?;
        if view.held + view.waiting >= calls as u64 {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            let stand = view.held + view.waiting;
            return Err(io::Error::other(format!("{stand} of {calls} calls stand")));
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// How long an answer takes, and what it is.
async fn timed(central: &mut Central, request: Request) -> io::Result<(f64, Reply)> {
    let asked = Instant::now();
    let reply = central.ask(&request).await?;
    Ok((millis(asked), reply))
}

fn standing_in(process: &str, processes: &Reply) -> u64 {
    let Reply::Processes(views) = processes else { return 0 };
    let view = views.iter().find(|view| view.name == process);
    view.map_or(0, |view| view.held + view.waiting)
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
