//! Everybody who stands still can say why.

use std::time::Duration;

use ddbx_protocol::{ProcessIndex, RealTime, Safeguards, StopId, StopReason};

use super::Satellite;
use crate::logic::permit::Judgement;
use crate::logic::strand::StrandId;

/// Why a strand stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Why {
    /// The kind of stop.
    pub reason: StopReason,
    /// Whom it waits for, where the rule makes it wait.
    pub by: Option<StopId>,
    /// The process that both may enter.
    pub through: ProcessIndex,
    /// How long it still has to stand at the least: from now, or, if `open`,
    /// from the end of the stop that it waits for.
    pub at_least: Duration,
    /// Whether nobody knows when that stop ends.
    pub open: bool,
}

impl<S: Safeguards> Satellite<S> {
    /// Why a strand stands still, if it does.
    pub fn why(&self, now: RealTime, strand: StrandId) -> Option<Why> {
        let number = self.stops.number_of(strand)?;
        let stop = self.stops.get(number)?;
        let (reason, through) = (stop.reason, self.process);
        let mut why = Why { reason, by: None, through, at_least: Duration::ZERO, open: true };
        if reason.is_users() {
            return Some(why);
        }
        match self.judge(stop.clock, stop.least, Some(number)) {
            Judgement::Go => why.open = false,
            Judgement::When(demanded, by) => {
                (why.by, why.open) = (by, false);
                why.at_least = demanded.beyond(stop.grown(now));
            }
            Judgement::Blocked(by) => {
                why.by = Some(by);
                let behind = self.furthest_standing().map(|(clock, _)| stop.clock.since(clock));
                why.at_least = behind.unwrap_or_default();
            }
        }
        Some(why)
    }
}
