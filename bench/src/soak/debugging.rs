//! Somebody debugs the shop as the script says, through the session's own door.

use std::io;
use std::time::{Duration, Instant};

use ddbx_protocol::BreakpointId;
use ddbx_protocol::control::{BreakpointView, HoldView, Reply, Request, Whom};
use serde::Serialize;
use tokio::time::sleep;

use super::script::{Script, Step};
use crate::scale::Central;

const PATIENCE: Duration = Duration::from_secs(30);

/// What was done.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    pub rounds: u64,
    pub breakpoints_set: u64,
    /// How often a breakpoint has stopped somebody.
    pub hits: u64,
    pub processes_paused: u64,
    /// How many have gone on because they were let go.
    pub let_go: u64,
    /// The most who stood still when somebody looked.
    pub standing_max: u64,
    /// How often conditions could not be evaluated.
    pub condition_errors: u64,
}

/// A debugger at work.
pub struct Debugging<'a> {
    central: &'a mut Central,
    planted: Vec<BreakpointId>,
    tally: Tally,
}

impl<'a> Debugging<'a> {
    pub fn new(central: &'a mut Central) -> Self {
        Self { central, planted: Vec::new(), tally: Tally::default() }
    }

    /// Follows the script for so long, and on until a breakpoint was hit; nobody is held at
    /// the end.
    pub async fn follow(mut self, script: &mut Script, lasts: Duration) -> io::Result<Tally> {
        let began = Instant::now();
        let goes_on = |tally: &Tally| match began.elapsed() {
            elapsed if elapsed < lasts => true,
            elapsed => tally.hits == 0 && elapsed < lasts + PATIENCE,
        };
        while goes_on(&self.tally) {
            for step in script.round(self.planted.len()) {
                self.take(step).await?;
            }
            self.tally.rounds += 1;
        }
        self.leave().await?;
        Ok(self.tally)
    }

    async fn take(&mut self, step: Step) -> io::Result<()> {
        match step {
            Step::Set(wanted) => {
                let Reply::Breakpoint(view) = self.central.ask(&Request::Break(wanted)).await?
                else {
                    return Err(io::Error::other("no breakpoint where one was set"));
                };
                self.planted.push(view.id);
                self.tally.breakpoints_set += 1;
            }
            Step::Delete(nth) if nth < self.planted.len() => {
                let id = self.planted.remove(nth);
                self.count_hits(|view| view.id == id).await?;
                self.central.ask(&Request::Delete(Some(id))).await?;
            }
            Step::Delete(_) => {}
            Step::DeleteAll => {
                self.planted.clear();
                self.count_hits(|_| true).await?;
                self.central.ask(&Request::Delete(None)).await?;
            }
            Step::Pause(process) => {
                self.central.ask(&Request::Pause(Some(process))).await?;
                self.tally.processes_paused += 1;
            }
            Step::Continue(whom) => {
                if let Reply::Done(number) = self.central.ask(&Request::Continue(whom)).await? {
                    self.tally.let_go += number;
                }
            }
            Step::Look => self.look().await?,
            Step::Wait(length) => sleep(length).await,
        }
        Ok(())
    }

    async fn look(&mut self) -> io::Result<()> {
        let holds = self.holds().await?;
        self.tally.standing_max = self.tally.standing_max.max(holds.len() as u64);
        if let Some(hold) = holds.first() {
            // It may have gone on meanwhile.
            self.central.answer(&Request::Backtrace(hold.id)).await?;
        }
        for request in [Request::Processes, Request::Calls, Request::Watched] {
            self.central.ask(&request).await?;
        }
        Ok(())
    }

    async fn holds(&mut self) -> io::Result<Vec<HoldView>> {
        match self.central.ask(&Request::Holds).await? {
            Reply::Holds(holds) => Ok(holds),
            other => Err(io::Error::other(format!("no holds: {other:?}"))),
        }
    }

    async fn count_hits(&mut self, of: impl Fn(&BreakpointView) -> bool) -> io::Result<()> {
        if let Reply::Breakpoints(views) = self.central.ask(&Request::Breakpoints).await? {
            for view in views.iter().filter(|view| of(view)) {
                self.tally.hits += view.hits;
                self.tally.condition_errors += view.errors;
            }
        }
        Ok(())
    }

    /// Everybody goes on, and has caught up.
    async fn leave(&mut self) -> io::Result<()> {
        self.take(Step::DeleteAll).await?;
        let began = Instant::now();
        loop {
            self.take(Step::Continue(Whom::All)).await?;
            let standing = self.holds().await?;
            if standing.is_empty() {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                let why = format!("{} stand though nobody is held: {standing:?}", standing.len());
                return Err(io::Error::other(why));
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}
