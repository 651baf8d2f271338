//! What a recording has promised: once a program was told that all is on the disk, it must
//! be found there, whatever happens to the program afterwards.

use std::path::Path;

use ddbx_protocol::EventKind;
use ddbx_recording::{Entry, Log, ReadError, Recording, verify};

use super::program::Program;
use super::run::Trouble;
use super::stage::Stage;
use super::told::Moment;

/// All promises of a run.
#[derive(Default)]
pub(super) struct Promises {
    made: Vec<Promise>,
    flushes: u32,
}

/// What is known to have happened in a process when it was told that all is on the disk, or
/// what it has said itself to be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Promise {
    pid: u32,
    /// How many calls have arrived.
    arrivals: u64,
    /// How many points were passed.
    points: u64,
    /// The last event of which the process says that it is durable.
    last: u64,
}

impl Promises {
    /// Asks all programs to flush, if they are recorded, and notes what that promises.
    pub(super) async fn make(&mut self, stage: &mut Stage) -> Result<(), Trouble> {
        let Some(debugger) = stage.debugger.as_ref().filter(|it| it.recording.is_some()) else {
            return Ok(());
        };
        for view in debugger.processes().await? {
            let last = view.durable.unwrap_or_default();
            self.made.push(Promise { pid: view.pid, last, ..Promise::default() });
        }
        self.flushes += 1;
        let name = format!("flush-{}", self.flushes);
        for program in stage.services.iter_mut().chain([&mut stage.caller]) {
            let promise = Promise::of(program);
            program.say(&format!("flush {name}")).await;
            // It may say that the disk is full, and promises nothing then.
            if program.outcome(&name).await? == "ok" {
                self.made.push(promise);
            }
        }
        Ok(())
    }

    /// How many events were promised, and which are not there.
    pub(super) fn kept(&self, recording: &Path) -> (u64, Vec<String>) {
        let promised = self.made.iter().map(|it| it.arrivals + it.points).sum();
        let recording = match Recording::open(recording) {
            Ok(recording) => recording,
            Err(error) => return (promised, vec![format!("the recording: {error}")]),
        };
        let mut lost = Vec::new();
        let verified = verify(&recording);
        if !verified.is_sound() {
            lost.push(format!("the recording is not sound: {:?}", verified.findings));
        }
        let found: Vec<_> = recording.logs().iter().map(|log| (log, found_in(log))).collect();
        for promise in &self.made {
            let log = found.iter().find(|(log, _)| log.manifest().pid == promise.pid);
            match log {
                Some((_, Ok(found))) if promise.is_kept_by(found) => {}
                found => lost.push(format!("{promise:?}, found {found:?}")),
            }
        }
        (promised, lost)
    }
}

impl Promise {
    fn of(program: &Program) -> Self {
        let progress = program.progress();
        let count = |moment| progress.iter().filter(|it| it.moment == moment).count() as u64;
        Self {
            pid: program.pid.unsigned_abs(),
            arrivals: count(Moment::Begins),
            points: count(Moment::Passes),
            last: 0,
        }
    }

    fn is_kept_by(&self, found: &Self) -> bool {
        found.arrivals >= self.arrivals && found.points >= self.points && found.last >= self.last
    }
}

fn found_in(log: &Log) -> Result<Promise, ReadError> {
    let mut found = Promise { pid: log.manifest().pid, ..Promise::default() };
    for recorded in log.read()? {
        match recorded?.entry {
            Entry::Event(moment) => {
                found.last = moment.number.0;
                found.arrivals += u64::from(matches!(moment.kind, EventKind::CallArrived { .. }));
                found.points += u64::from(matches!(moment.kind, EventKind::Point { .. }));
            }
            // What is missing is counted there, and was not promised.
            Entry::Choice(_) | Entry::Gap(_) => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_kept_by_as_much_or_more() {
        let promise = Promise { pid: 1, arrivals: 3, points: 2, last: 9 };
        assert!(promise.is_kept_by(&promise));
        assert!(promise.is_kept_by(&Promise { last: 10, ..promise }));
        assert!(!promise.is_kept_by(&Promise { arrivals: 2, ..promise }));
        assert!(!promise.is_kept_by(&Promise { points: 1, ..promise }));
        assert!(!promise.is_kept_by(&Promise { last: 8, ..promise }));
    }
}
