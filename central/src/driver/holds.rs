//! Who stands still, as people see it.

use std::collections::{BTreeMap, BTreeSet};

use ddbx_protocol::{
    BreakpointId, Gate, HoldId, ProcessIndex, RealTime, Stack, Standing, StopId, StopReason,
};

use super::{Hit, StandingCalls};

/// How much text the arguments and results of all who stand have together. Whoever stands
/// still when there is no more room is shown without.
const VALUES_BYTES_MAX: usize = 64 << 20;

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
    /// Said just before the stop itself: so of each process only the last matters.
    described: BTreeMap<ProcessIndex, (u64, Standing)>,
    values_bytes: usize,
    values_dropped: u64,
    expiries: BTreeSet<(RealTime, StopId)>,
    last: u64,
}

impl Holds {
    pub(super) fn so_far(&self) -> u64 {
        self.last
    }

    pub(super) fn describe(&mut self, stop: StopId, standing: Standing) {
        self.described.insert(stop.process, (stop.number, standing));
    }

    /// How many arguments and results there was no room for.
    pub(super) fn values_dropped(&self) -> u64 {
        self.values_dropped
    }

    /// What was said of a stop, with its values if there is room for them.
    fn take_description(&mut self, stop: StopId) -> Option<Standing> {
        let (number, mut standing) = self.described.remove(&stop.process)?;
        if number != stop.number {
            return None;
        }
        let bytes = values_bytes(&standing);
        if self.values_bytes + bytes > VALUES_BYTES_MAX {
            self.values_dropped += 1;
            (standing.args, standing.result) = (None, None);
        } else {
            self.values_bytes += bytes;
        }
        Some(standing)
    }

    /// Somebody stands still, or for another reason than before.
    pub(super) fn begin(&mut self, now: RealTime, stop: StopId, reason: StopReason, stack: Stack) {
        let standing = self.take_description(stop);
        if let Some(hold) = self.holds.get_mut(&stop) {
            hold.reason = reason;
            if let Some(standing) = standing {
                let before = hold.standing.replace(standing);
                self.values_bytes -= before.as_ref().map_or(0, values_bytes);
            }
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
        let hold = self.holds.remove(&stop)?;
        self.stops.remove(&hold.id);
        self.values_bytes -= hold.standing.as_ref().map_or(0, values_bytes);
        if let Some(at) = hold.expires {
            self.expiries.remove(&(at, stop));
        }
        Some((hold.id, hold.since))
    }

    pub(super) fn end_all_in(&mut self, process: ProcessIndex) -> Vec<(HoldId, RealTime)> {
        self.described.remove(&process);
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
        self.stops_in(process).fold((0, 0), |(held, waiting), stop| {
            match self.holds[&stop].reason.is_users() {
                true => (held + 1, waiting),
                false => (held, waiting + 1),
            }
        })
    }

    /// As many as can be told, the oldest first: those that the user holds, and as many of the
    /// others as there is room for.
    pub(super) fn told(&self, most: usize) -> Vec<StopId> {
        if self.stops.len() <= most {
            return self.iter().map(|(stop, _)| stop).collect();
        }
        let ids = |held: bool| {
            let like = move |(_, hold): &(StopId, &Hold)| hold.reason.is_users() == held;
            self.iter().filter(like).map(|(_, hold)| hold.id)
        };
        let told: BTreeSet<HoldId> = ids(true).chain(ids(false)).take(most).collect();
        told.into_iter().filter_map(|id| self.stop(id)).collect()
    }
}

fn values_bytes(standing: &Standing) -> usize {
    let text = [&standing.args, &standing.result];
    text.into_iter().flatten().map(String::len).sum()
}

#[cfg(test)]
mod tests {
    use ddbx_protocol::{ControlId, MethodName, RpcEvent};

    use super::*;

    const PROCESS: ProcessIndex = ProcessIndex(1);

    fn stop(number: u64) -> StopId {
        StopId { process: PROCESS, number }
    }

    fn standing(args: String) -> Standing {
        Standing {
            gate: Gate::Rpc(RpcEvent::Arrive, MethodName::new("Shop.buy").unwrap()),
            control: ControlId::new("p/main").unwrap(),
            args: Some(args),
            result: None,
            awaited: None,
        }
    }

    fn begin(holds: &mut Holds, number: u64, reason: StopReason) {
        holds.begin(RealTime::default(), stop(number), reason, Stack::home(PROCESS));
    }

    #[test]
    fn what_stands_is_kept_without_its_values_when_there_is_no_more_room() {
        let mut holds = Holds::default();
        let mib = "x".repeat(1 << 20);
        let most = (VALUES_BYTES_MAX >> 20) as u64;
        for number in 1..=most + 2 {
            holds.describe(stop(number), standing(mib.clone()));
            begin(&mut holds, number, StopReason::Process);
        }
        let has_args = |holds: &Holds, number| {
            holds.get(stop(number)).unwrap().standing.as_ref().unwrap().args.is_some()
        };
        assert!(has_args(&holds, most) && !has_args(&holds, most + 1));
        assert_eq!(holds.values_dropped(), 2);
        // The same stop, described anew: what it had before makes room.
        holds.end(stop(1));
        holds.describe(stop(most + 1), standing(mib.clone()));
        begin(&mut holds, most + 1, StopReason::Process);
        assert!(has_args(&holds, most + 1));
        holds.end_all_in(PROCESS);
        assert_eq!(holds.values_bytes, 0);
    }

    #[test]
    fn what_is_said_of_stops_that_never_come_is_not_kept() {
        let mut holds = Holds::default();
        for number in 0..1_000 {
            holds.describe(stop(number), standing("{}".to_owned()));
        }
        assert_eq!(holds.described.len(), 1);
        begin(&mut holds, 7, StopReason::Delay);
        assert!(holds.get(stop(7)).unwrap().standing.is_none(), "that was about another");
    }

    #[test]
    fn of_too_many_those_that_the_user_holds_are_told() {
        let mut holds = Holds::default();
        for number in 1..=10 {
            let reason = if number == 9 { StopReason::Process } else { StopReason::Delay };
            begin(&mut holds, number, reason);
        }
        assert_eq!(holds.told(10).len(), 10);
        assert_eq!(holds.told(3), [stop(1), stop(2), stop(9)]);
    }
}
