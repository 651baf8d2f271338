//! Faults of real processes: schedules that follow from seeds are played twice, with the
//! debugger and without, and must not differ for the program that is debugged.
//!
//! A schedule ([`schedule`]) is a handful of processes that call each other with deadlines.
//! Call by call, one is held at a breakpoint while others wait for it, and then something
//! goes wrong ([`kinds`]). Whatever it is, no program may hang, no call may end in another
//! way than without a debugger, whoever stood still goes on soon, and what a recording said
//! to be on the disk is there.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use std::{io, thread};

use tokio::sync::watch;

mod crowd;
pub mod kinds;
mod network;
mod play;
mod program;
mod promises;
mod relay;
mod report;
mod run;
pub mod schedule;
mod stage;
mod strike;
pub mod told;

use kinds::{Kind, Way};
use network::Network;
use play::play;
pub use report::{Report, Violation};
use report::{Tally, Verdict};
use run::Trouble;
use schedule::Schedule;

use crate::place::Place;
use crate::small_disk::SmallDisk;

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which schedules, by number.
    pub numbers: Vec<u64>,
    /// What they follow from.
    pub seed: u64,
    /// How many are played at a time.
    pub at_once: usize,
    /// How many satellites are there at once in the one test that has very many; none to
    /// leave it out.
    pub satellites: usize,
    /// Where `ddbx-under-test` and `actor` are.
    pub programs: PathBuf,
}

/// Plays all schedules. Ends early, and leaves nothing behind, when told to.
///
/// # Errors
///
/// If it was told to end, or could not begin.
pub fn run(
    plan: &Plan,
    stopped: &watch::Receiver<bool>,
    progress: impl Fn(u64) + Sync,
) -> Result<Report, String> {
    let began = Instant::now();
    let missing = Missing::find();
    let crowd = match plan.satellites {
        0 => None,
        many => Some(apart(stopped, || crowd::meet(many, &plan.programs))?),
    };
    let next = AtomicU64::new(0);
    let tally = Mutex::new(Tally::default());
    let lock = || tally.lock().unwrap_or_else(PoisonError::into_inner);
    let plays = || {
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed) as usize;
            let Some(number) = plan.numbers.get(nth) else { return Ok(()) };
            let schedule = Schedule::new(plan.seed, *number);
            match missing.for_schedule(&schedule) {
                Some(why) => lock().skip(&schedule, why),
                None => {
                    let verdict = apart(stopped, || both(&schedule, plan))?;
                    lock().count(&schedule, verdict);
                }
            }
            progress(nth as u64 + 1);
        }
    };
    thread::scope(|scope| {
        let players: Vec<_> = (0..plan.at_once.max(1)).map(|_| scope.spawn(plays)).collect();
        players.into_iter().try_for_each(|player| {
            player.join().unwrap_or_else(|_| Err("a schedule panicked".to_owned()))
        })
    })?;
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Report::new(plan, tally, crowd, began.elapsed()))
}

/// With the debugger, and without.
async fn both(schedule: &Schedule, plan: &Plan) -> Verdict {
    let with = play(schedule, &plan.programs, true).await;
    let without = play(schedule, &plan.programs, false).await;
    Verdict { with, without }
}

/// Does something on a thread and a runtime of its own: a thread that has gone into another
/// network does not come back, and whatever was begun ends with the runtime.
fn apart<F: Future<Output: Send>>(
    stopped: &watch::Receiver<bool>,
    what: impl FnOnce() -> F + Send,
) -> Result<F::Output, String> {
    let mut stopped = stopped.clone();
    let runs = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error: io::Error| error.to_string())?;
        runtime.block_on(async {
            tokio::select! {
                done = what() => Ok(done),
                Ok(_) = stopped.wait_for(|stopped| *stopped) => Err("interrupted".to_owned()),
            }
        })
    };
    let joined = thread::scope(|scope| scope.spawn(runs).join());
    joined.unwrap_or_else(|_| Err("a schedule panicked".to_owned()))
}

/// What this machine does not offer, with the reason.
struct Missing {
    network: Option<String>,
    disk: Option<String>,
}

impl Missing {
    fn find() -> Self {
        let disk = Place::new().ok().and_then(|place| SmallDisk::mount(place.dir().join("disk")));
        let no_disk = "a tmpfs cannot be mounted here: that takes root";
        Self {
            network: Network::make().err().map(|why| format!("no network namespaces: {why}")),
            disk: disk.is_none().then(|| no_disk.to_owned()),
        }
    }

    fn for_schedule(&self, schedule: &Schedule) -> Option<&str> {
        let network = self.network.as_deref().filter(|_| schedule.way() == Way::Network);
        network.or(self.disk.as_deref().filter(|_| schedule.fills_a_disk()))
    }
}

/// How long somebody who stands still may go on standing, if this is how central is lost.
fn release_limit_ms(kind: Kind) -> u64 {
    match kind {
        Kind::CentralStopped | Kind::ConnectionHalfOpen | Kind::NetworkCut => HALF_OPEN_MS,
        _ => CLOSED_MS,
    }
}

/// After a connection is closed.
const CLOSED_MS: u64 = 500;

/// After nothing is heard any more.
const HALF_OPEN_MS: u64 = 3_000;
