//! One run of a schedule: calls are made, one of them is held, something goes wrong, and all
//! must come to an end.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use ddbx_protocol::BreakpointId;
use ddbx_protocol::breakpoint::Scope;
use ddbx_protocol::control::{HoldReason, Reply, Request, Wanted, Whom};
use tokio::time::sleep;

use super::promises::Promises;
use super::run::{Run, Trouble};
use super::schedule::{Act, HELD, Schedule};
use super::stage::{CALLER, Debugger, Stage, Walk};
use super::told::Moment;
use crate::waiting::LIMIT;

/// What calls may take of which nothing is to be learnt.
const PLENTY_MS: u64 = 30_000;

/// Plays a schedule.
pub(super) async fn play(schedule: &Schedule, programs: &Path, with_debugger: bool) -> Run {
    let mut run = Run::default();
    let played = async {
        let stage = Stage::open(schedule, programs, with_debugger).await?;
        play_on(stage, schedule, &mut run).await
    };
    let trouble = played.await.err();
    Run { trouble, ..run }
}

/// Plays a schedule on a stage that is open.
pub(super) async fn play_on(
    stage: Stage,
    schedule: &Schedule,
    run: &mut Run,
) -> Result<(), Trouble> {
    let mut play = Play { stage, run, promises: Promises::default() };
    play.run.programs = schedule.services as u64 + 1;
    for (number, act) in (1..).zip(&schedule.acts) {
        play.act(number, act).await?;
    }
    play.end().await
}

pub(super) struct Play<'a> {
    pub(super) stage: Stage,
    pub(super) run: &'a mut Run,
    pub(super) promises: Promises,
}

impl Play<'_> {
    async fn act(&mut self, number: u32, act: &Act) -> Result<(), Trouble> {
        let held = format!("{HELD}-{number}");
        self.prepare(number, act).await?;
        let breakpoint = self.set_breakpoint(act).await?;
        let awaits = act.awaits_in();
        let walk = Walk {
            name: &held,
            path: &act.path,
            work_ms: 0,
            deadline_ms: act.deadline_ms(),
            awaits: awaits.is_some(),
        };
        self.stage.walk(walk).await;
        match breakpoint {
            Some(breakpoint) => {
                self.until_hit(breakpoint).await?;
                let since = Instant::now();
                self.begin_others(number, act).await;
                let rest = Duration::from_millis(act.held_ms).saturating_sub(since.elapsed());
                sleep(rest).await;
                self.promises.make(&mut self.stage).await?;
                self.strike(act, &held).await?;
                self.let_go().await?;
            }
            None => {
                if let Some(last) = awaits {
                    self.stage.services[last].comes_to(&held, Moment::Awaits).await?;
                    self.strike_program(act, &held).await?;
                }
                self.begin_others(number, act).await;
                self.mend_program(act).await;
            }
        }
        if let Some(last) = awaits {
            self.stage.services[last].say(&format!("go {held}")).await;
        }
        let others = act.others.iter().map(|call| format!("{}-{number}", call.name));
        for name in others.chain([held]) {
            self.note_outcome(name).await?;
        }
        if act.kind.ends_a_service() {
            self.run.programs += 1;
            self.stage.start_again(act.target, false).await?;
        }
        self.walk_well(&format!("after-{number}"), &act.path).await
    }

    /// All connections exist before anything is held: without that nothing is promised.
    async fn prepare(&mut self, number: u32, act: &Act) -> Result<(), Trouble> {
        if act.kind == super::kinds::Kind::PanicAborts {
            self.run.programs += 1;
            self.stage.start_again(act.target, true).await?;
        }
        let paths: BTreeSet<&[usize]> =
            act.others.iter().map(|call| &*call.path).chain([&*act.path]).collect();
        for (nth, path) in paths.into_iter().enumerate() {
            self.walk_well(&format!("before-{number}-{nth}"), path).await?;
        }
        Ok(())
    }

    /// Makes a call that must go well, whatever has happened.
    async fn walk_well(&mut self, name: &str, path: &[usize]) -> Result<(), Trouble> {
        let walk = Walk { name, path, work_ms: 0, deadline_ms: PLENTY_MS, awaits: false };
        self.stage.walk(walk).await;
        self.note_outcome(name.to_owned()).await
    }

    async fn note_outcome(&mut self, name: String) -> Result<(), Trouble> {
        let outcome = self.stage.caller.outcome(&name).await?;
        self.run.outcomes.insert(name, outcome);
        Ok(())
    }

    async fn begin_others(&mut self, number: u32, act: &Act) {
        for call in &act.others {
            let name = format!("{}-{number}", call.name);
            let walk = Walk {
                name: &name,
                path: &call.path,
                work_ms: call.work_ms,
                deadline_ms: call.deadline_ms,
                awaits: false,
            };
            self.stage.walk(walk).await;
        }
    }

    async fn set_breakpoint(&self, act: &Act) -> Result<Option<BreakpointId>, Trouble> {
        let Some(debugger) = &self.stage.debugger else { return Ok(None) };
        let scope = if act.holds_call_only { Scope::Call } else { Scope::Process };
        let wanted = Wanted { spec: act.spec(), scope, ..Wanted::default() };
        match debugger.ask(Request::Break(wanted)).await? {
            Reply::Breakpoint(view) => Ok(Some(view.id)),
            other => Err(Trouble::Stage(format!("no breakpoint: {other:?}"))),
        }
    }

    async fn until_hit(&self, breakpoint: BreakpointId) -> Result<(), Trouble> {
        let debugger = self.debugger()?;
        match debugger.ask(Request::Wait { breakpoint, timeout: LIMIT }).await? {
            Reply::Hit(_) => Ok(()),
            other => Err(Trouble::Stage(format!("nobody is held: {other:?}"))),
        }
    }

    /// Whoever the user holds goes on, and nobody else is held.
    async fn let_go(&self) -> Result<(), Trouble> {
        let debugger = self.debugger()?;
        debugger.ask(Request::Delete(None)).await?;
        debugger
            .until("nobody is held", async || {
                let holds = debugger.holds().await?;
                if holds.iter().all(|hold| hold.reason == HoldReason::Delay) {
                    return Ok(Some(()));
                }
                // Somebody may have gone on in between, and then there is nobody to continue.
                let _ = debugger.ask(Request::Continue(Whom::All)).await;
                Ok(None)
            })
            .await
    }

    pub(super) fn debugger(&self) -> Result<&Debugger, Trouble> {
        self.stage.debugger.as_ref().ok_or_else(|| Trouble::Stage("no debugger".to_owned()))
    }

    /// All programs end by themselves when there is no more to do.
    async fn end(mut self) -> Result<(), Trouble> {
        self.stage.caller.close_stdin();
        self.stage.caller.ends().await?;
        for service in &mut self.stage.services {
            service.close_stdin();
            service.ends().await?;
        }
        let recording = self.stage.debugger.as_ref().and_then(|it| it.recording.as_deref());
        if let Some(recording) = recording {
            (self.run.promised, self.run.lost) = self.promises.kept(recording);
        }
        Ok(())
    }
}

/// Whose control a call of the caller is.
pub(super) fn control_of(call: &str) -> String {
    format!("{CALLER}/{call}")
}
