//! Attempts to get into a session: a real central at each kind of address, a process that
//! takes part, and strangers of many kinds. None may get in, and none may learn anything.
//!
//! What central may say to a stranger is its part of the handshake, and that is all:
//! whatever else it says counts as leaked.

use std::path::PathBuf;
use std::sync::Arc;

use futures::StreamExt;

mod afterwards;
mod attempt;
mod certificates;
mod commands;
mod crowd;
mod kinds;
mod other_user;
mod raw;
mod report;
mod target;
mod tls;
mod watcher;

use kinds::{Case, Phase, cases};
pub use other_user::{Knocks, knock};
pub use report::Report;
use report::Tally;
use target::Targets;
use watcher::Watcher;

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many attempts.
    pub attempts: usize,
    /// What they are made of.
    pub seed: u64,
    /// Where `ddbx-under-test`, `actor` and `intrude` are.
    pub programs: PathBuf,
}

/// How many attempts are under way at a time, but for those that only wait.
const AT_ONCE: usize = 24;

/// Makes all attempts.
///
/// # Errors
///
/// If the sessions cannot be opened, or do not answer in the end.
pub async fn run(plan: &Plan) -> Result<Report, String> {
    let targets = Arc::new(Targets::open(&plan.programs).await?);
    let mut tally = Tally::default();
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut all = Vec::with_capacity(plan.attempts);
    let kinds = cases();
    all.extend(kinds.iter().copied().cycle().take(plan.attempts));
    random.shuffle(&mut all);
    let (quiet, others): (Vec<Case>, Vec<Case>) =
        all.into_iter().partition(|case| case.kind.phase() == Phase::OtherUser);

    // Nobody else may be there while the directory is open for others.
    other_user::attempts(&targets, &plan.programs, &quiet, &mut tally).await?;
    let crowds = crowd::at_every_door(&targets).await?;

    let (waiting, others): (Vec<Case>, Vec<Case>) =
        others.into_iter().partition(|case| case.kind.phase() == Phase::Waits);
    let seeds = |cases: Vec<Case>, random: &mut fastrand::Rng| {
        cases.into_iter().map(|case| (case, random.u64(..))).collect::<Vec<_>>()
    };
    let (waiting, others) = (seeds(waiting, &mut random), seeds(others, &mut random));
    // What there is before the first attempt is not yet all that a session needs.
    let warm_up = others.len() / 5;
    let (first, rest) = others.split_at(warm_up);
    make(&targets, first, AT_ONCE, &mut tally).await;
    let before = targets.settled().await?;
    let watcher = Watcher::start(&targets);
    let mut of_waiting = Tally::default();
    tokio::join!(
        make(&targets, rest, AT_ONCE, &mut tally),
        make(&targets, &waiting, waiting.len().max(1), &mut of_waiting),
    );
    tally.add(of_waiting);
    let watched = watcher.end().await;
    let after = targets.settled().await?;
    Ok(Report::new(plan, tally, crowds, watched, (before, after)))
}

async fn make(targets: &Targets, cases: &[(Case, u64)], at_once: usize, tally: &mut Tally) {
    let attempts = cases.iter().map(|(case, seed)| async move {
        (*case, attempt::make(targets, *case, fastrand::Rng::with_seed(*seed)).await)
    });
    let mut attempts = futures::stream::iter(attempts).buffer_unordered(at_once);
    while let Some((case, outcome)) = attempts.next().await {
        tally.count(case, outcome);
    }
}
