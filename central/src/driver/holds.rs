//! Who stands still, as people see it.

use std::collections::{BTreeMap, BTreeSet};

use ddbx_protocol::{
    BreakpointId, Gate, HoldId, ProcessIndex, RealTime, Stack, Standing, StopId, StopReason,
};

use super::{Hit, StandingCalls};

/// A stop with what there is to see of it.
pub(super) struct Hold {
    pub(super) id: HoldId,
    pub(super) since: RealTime,
    pub(super) reason: StopReason,
    pub(super) stack: Stack,
    pub(super) standing: Option<Standing>,
    expires: Option<RealTime>,
    /// The breakpoint at which its listener already knows it to stand.
    told: Option<BreakpointId>,
}

#[derive(Default)]
pub(super) struct Holds {
    holds: BTreeMap<StopId, Hold>,
    stops: BTreeMap<HoldId, StopId>,
    /// Said just before the stop itself.
    described: BTreeMap<StopId, Standing>,
    expiries: BTreeSet<(RealTime, StopId)>,
    last: u64,
}

impl Holds {
    pub(super) fn so_far(&self) -> u64 {
        self.last
    }

    pub(super) fn describe(&mut self, stop: StopId, standing: Standing) {
        self.described.insert(stop, standing);
    }

    /// Somebody stands still, or for another reason than before.
    pub(super) fn begin(&mut self, now: RealTime, stop: StopId, reason: StopReason, stack: Stack) {
        let standing = self.described.remove(&stop);
        if let Some(hold) = self.holds.get_mut(&stop) {
            hold.reason = reason;
            hold.standing = standing.or(hold.standing.take());
            return;
        }
        self.last += 1;
        let id = HoldId(self.last);
        self.stops.insert(id, stop);
        let (expires, told) = (None, None);
        let hold = Hold { id, since: now, reason, stack, standing, expires, told };
        self.holds.insert(stop, hold);
    }

    /// Those whom the rule makes wait, except at a breakpoint; and except deadlines.
    pub(super) fn on_the_way(&self) -> Vec<StopId> {
        let waits = |hold: &Hold| hold.reason == StopReason::Delay && hold.told.is_none();
        let goes_on =
            |hold: &Hold| hold.standing.as_ref().is_some_and(|s| s.gate != Gate::Deadline);
        let waiting = self.holds.iter().filter(|(_, hold)| waits(hold) && goes_on(hold));
        waiting.map(|(stop, _)| *stop).collect()
    }

    /// Whether it stands at this breakpoint, held or made to wait.
    pub(super) fn stands_at(&self, stop: StopId, breakpoint: BreakpointId) -> bool {
        self.get(stop).is_some_and(|hold| hold.told == Some(breakpoint))
    }

    /// Whether this is the first to be heard of its standing at a breakpoint.
    pub(super) fn is_news(&mut self, hit: Hit) -> bool {
        let hold = self.holds.get_mut(&hit.stop);
        hold.is_some_and(|hold| hold.told.replace(hit.breakpoint) != Some(hit.breakpoint))
    }

    /// It goes on: who it was, and since when it stood.
    pub(super) fn end(&mut self, stop: StopId) -> Option<(HoldId, RealTime)> {
        self.described.remove(&stop);
        let hold = self.holds.remove(&stop)?;
        self.stops.remove(&hold.id);
        if let Some(at) = hold.expires {
            self.expiries.remove(&(at, stop));
        }
        Some((hold.id, hold.since))
    }

    pub(super) fn end_all_in(&mut self, process: ProcessIndex) -> Vec<(HoldId, RealTime)> {
        self.described.retain(|stop, _| stop.process != process);
        let stops: Vec<StopId> = self.stops_in(process).collect();
        stops.into_iter().filter_map(|stop| self.end(stop)).collect()
    }

    fn stops_in(&self, process: ProcessIndex) -> impl Iterator<Item = StopId> {
        let first = StopId { process, number: 0 };
        let last = StopId { process, number: u64::MAX };
        self.holds.range(first..=last).map(|(stop, _)| *stop)
    }

    /// Ends by itself at this time.
    pub(super) fn expire(&mut self, stop: StopId, at: RealTime) {
        if let Some(hold) = self.holds.get_mut(&stop) {
            hold.expires = Some(at);
            self.expiries.insert((at, stop));
        }
    }

    pub(super) fn next_expiry(&self) -> Option<RealTime> {
        self.expiries.first().map(|(at, _)| *at)
    }

    pub(super) fn expired(&mut self, now: RealTime) -> Vec<StopId> {
        let later = self.expiries.split_off(&(now, StopId { process: ProcessIndex(0), number: 0 }));
        let expired = std::mem::replace(&mut self.expiries, later);
        expired.into_iter().map(|(_, stop)| stop).collect()
    }

    pub(super) fn get(&self, stop: StopId) -> Option<&Hold> {
        self.holds.get(&stop)
    }

    /// The breakpoint before which the rule makes it wait.
    pub(super) fn awaited(&self, stop: StopId) -> Option<BreakpointId> {
        self.get(stop).and_then(|hold| hold.standing.as_ref()).and_then(|s| s.awaited)
    }

    pub(super) fn stop(&self, id: HoldId) -> Option<StopId> {
        self.stops.get(&id).copied()
    }

    pub(super) fn stack(&self, id: HoldId) -> Option<&Stack> {
        self.stop(id).and_then(|stop| self.get(stop)).map(|hold| &hold.stack)
    }

    /// All of them, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (StopId, &Hold)> {
        self.stops.values().filter_map(|stop| Some((*stop, self.holds.get(stop)?)))
    }

    /// Where calls stand: each in the first of its holds. A deadline is no place of a call.
    pub(super) fn standing_calls(&self, now: RealTime) -> StandingCalls {
        let mut standing_calls = StandingCalls::new();
        for (stop, hold) in self.iter() {
            let Some(standing) = &hold.standing else { continue };
            if standing.gate != Gate::Deadline {
                let depth = u32::try_from(hold.stack.0.len().saturating_sub(1));
                let call = (stop.process, standing.control.clone(), depth.unwrap_or(u32::MAX));
                standing_calls.entry(call).or_insert((hold.id, now.since(hold.since)));
            }
        }
        standing_calls
    }

    /// How many the user holds in a process, and how many wait there.
    pub(super) fn count_in(&self, process: ProcessIndex) -> (u64, u64) {
        let held = |stop: &StopId| self.holds[stop].reason.is_users();
        let (held, waiting): (Vec<_>, Vec<_>) = self.stops_in(process).partition(held);
        (held.len() as u64, waiting.len() as u64)
    }
}
