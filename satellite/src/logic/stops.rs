//! The strands that stand still at a gate of this process.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use ddbx_protocol::{Delay, RealTime, Stack, StopReason, ToCentral, VirtualTime};

use super::strand::{Strand, StrandId};
use ddbx_protocol::Gate;

/// A strand that stands still.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) strand: Strand,
    pub(super) gate: Gate,
    pub(super) reason: StopReason,
    /// Stands still.
    pub(super) clock: VirtualTime,
    /// It leaves with no less than this.
    pub(super) least: Delay,
    /// Whether its breakpoints have had their say.
    pub(super) broke: bool,
    /// Only for the simulator: whether others wait for it.
    pub(super) counts: bool,
    /// Only for the simulator: judged once, with this result, and never again.
    pub(super) judged_once: Option<Delay>,
}

impl Stop {
    /// Its delay by now.
    pub(super) fn grown(&self, now: RealTime) -> Delay {
        now.delay_of(self.clock)
    }

    /// Where it may still have an effect.
    pub(super) fn stack(&self) -> Stack {
        if self.counts { self.strand.stack.clone() } else { Stack::default() }
    }

    pub(super) fn as_message(&self, now: RealTime, number: u64) -> ToCentral {
        let (reason, clock, stack) = (self.reason, self.clock, self.stack());
        ToCentral::Stopped { number, reason, stack, clock, sent: now }
    }
}

/// All stops of the process, by number, by strand and by clock.
#[derive(Debug, Default)]
pub(super) struct Stops {
    stops: BTreeMap<u64, Stop>,
    number_of: BTreeMap<StrandId, u64>,
    /// Only the user can end these; furthest behind first.
    users: BTreeSet<(VirtualTime, u64)>,
    /// The rule will end these; furthest behind first.
    waiting: BTreeSet<(VirtualTime, u64)>,
}

impl Stops {
    pub(super) fn is_empty(&self) -> bool {
        self.stops.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.stops.len()
    }

    pub(super) fn get(&self, number: u64) -> Option<&Stop> {
        self.stops.get(&number)
    }

    pub(super) fn number_of(&self, strand: StrandId) -> Option<u64> {
        self.number_of.get(&strand).copied()
    }

    pub(super) fn numbers(&self) -> Vec<u64> {
        self.stops.keys().copied().collect()
    }

    pub(super) fn with_reason(&self, reason: StopReason) -> Vec<u64> {
        let like = self.stops.iter().filter(|(_, stop)| stop.reason == reason);
        like.map(|(number, _)| *number).collect()
    }

    /// How many only the user can end.
    pub(super) fn users_len(&self) -> usize {
        self.users.len()
    }

    /// The one furthest behind that only the user can end, except `me`.
    pub(super) fn furthest_held(&self, me: Option<u64>) -> Option<(VirtualTime, u64)> {
        let counts = |number: u64| Some(number) != me && self.stops[&number].counts;
        self.users.iter().find(|(_, number)| counts(*number)).copied()
    }

    /// The next one that the rule will end, less far behind than `last`.
    pub(super) fn next_waiting(
        &self,
        last: Option<(VirtualTime, u64)>,
    ) -> Option<(VirtualTime, u64)> {
        match last {
            None => self.waiting.first().copied(),
            Some(last) => self.waiting.range((Excluded(last), Unbounded)).next().copied(),
        }
    }

    /// Those that the rule will end, furthest behind first.
    pub(super) fn waiting(&self) -> Vec<u64> {
        self.waiting.iter().map(|(_, number)| *number).collect()
    }

    pub(super) fn insert(&mut self, number: u64, stop: Stop) {
        self.number_of.insert(stop.strand.id, number);
        self.file(&stop).insert((stop.clock, number));
        self.stops.insert(number, stop);
    }

    /// No breakpoint stops it any more.
    pub(super) fn break_no_more(&mut self, number: u64) {
        if let Some(stop) = self.stops.get_mut(&number) {
            stop.broke = true;
        }
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Stop> {
        let stop = self.stops.remove(&number)?;
        self.number_of.remove(&stop.strand.id);
        self.file(&stop).remove(&(stop.clock, number));
        Some(stop)
    }

    fn file(&mut self, stop: &Stop) -> &mut BTreeSet<(VirtualTime, u64)> {
        if stop.reason.is_users() { &mut self.users } else { &mut self.waiting }
    }
}
