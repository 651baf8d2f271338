//! Everybody who stands still, by where and by what it may still affect.
//!
//! Thousands of calls can wait at one gate. What matters of them to others is
//! little: stops in the same process with the same reach differ only in their
//! clocks, so they are kept as one group in the order of clocks, and the work of
//! a change goes with the number of groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ddbx_protocol::{ProcessIndex, Safeguard, Safeguards, Stack, StopId, StopReason, VirtualTime};

use super::topology::{Processes, Topology};

/// So many call stacks that nobody stands with are remembered before they are forgotten.
const UNUSED_MAX: usize = 4 * 1024;

/// Stops with one call stack have one reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReachClass(u32);

/// Stops of one process with one reach, furthest behind first.
pub type Group = BTreeSet<(VirtualTime, u64)>;

/// Groups by process and reach.
pub type Groups = BTreeMap<(ProcessIndex, ReachClass), Group>;

/// A stop as central knows it. The clock is central's own reading of it.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    /// Why it stands.
    pub reason: StopReason,
    /// What it may affect.
    pub class: ReachClass,
    /// Its frozen clock.
    pub clock: VirtualTime,
}

/// All stops of a session.
#[derive(Debug)]
pub struct Stops<S> {
    safeguards: S,
    stops: BTreeMap<StopId, Stop>,
    users: Groups,
    waiting: Groups,
    /// How many wait inside which process, by what they may affect.
    inside: BTreeMap<(ProcessIndex, ReachClass), usize>,
    classes: BTreeMap<Stack, ReachClass>,
    stacks: Vec<Stack>,
    affected: BTreeMap<ReachClass, Arc<Processes>>,
}

impl<S: Safeguards> Stops<S> {
    /// No stops yet.
    pub fn new(safeguards: S) -> Self {
        Self {
            safeguards,
            stops: BTreeMap::new(),
            users: Groups::new(),
            waiting: Groups::new(),
            inside: BTreeMap::new(),
            classes: BTreeMap::new(),
            stacks: Vec::new(),
            affected: BTreeMap::new(),
        }
    }

    /// The class of a call stack. How often or in which order it passes through
    /// a process makes no difference.
    pub fn class(&mut self, stack: &Stack) -> ReachClass {
        let mut stack = stack.clone();
        if self.safeguards.on(Safeguard::BeingInCounts) {
            let set: BTreeSet<ProcessIndex> = stack.0.iter().copied().collect();
            stack = Stack(set.into_iter().collect());
        }
        if let Some(&known) = self.classes.get(&stack) {
            return known;
        }
        if self.stacks.len() >= 2 * self.stops.len() + UNUSED_MAX {
            self.forget_unused();
        }
        let class = ReachClass(self.stacks.len() as u32);
        self.classes.insert(stack.clone(), class);
        self.stacks.push(stack);
        class
    }

    /// Adds a stop, in place of one of the same id.
    pub fn insert(&mut self, id: StopId, stop: Stop) {
        self.remove(id);
        self.stops.insert(id, stop);
        if stop.reason == StopReason::Inside {
            let count = self.inside.entry((id.process, stop.class)).or_default();
            *count += 1;
            if *count == 1 {
                self.forget_affected();
            }
        } else {
            let group = self.groups(stop.reason).entry((id.process, stop.class)).or_default();
            group.insert((stop.clock, id.number));
        }
    }

    /// Takes a stop away.
    pub fn remove(&mut self, id: StopId) -> Option<Stop> {
        let stop = self.stops.remove(&id)?;
        let place = (id.process, stop.class);
        if stop.reason == StopReason::Inside {
            if let Some(count) = self.inside.get_mut(&place) {
                *count -= 1;
                if *count == 0 {
                    self.inside.remove(&place);
                    self.forget_affected();
                }
            }
            return Some(stop);
        }
        let groups = self.groups(stop.reason);
        if let Some(group) = groups.get_mut(&place) {
            group.remove(&(stop.clock, id.number));
            if group.is_empty() {
                groups.remove(&place);
            }
        }
        Some(stop)
    }

    /// The clocks of a process were read too late: all of them by as much.
    pub fn set_back(&mut self, process: ProcessIndex, by: Duration) {
        for id in self.in_process(process) {
            if let Some(stop) = self.remove(id) {
                let clock = stop.clock - by;
                self.insert(id, Stop { clock, ..stop });
            }
        }
    }

    /// A stop.
    pub fn get(&self, id: StopId) -> Option<&Stop> {
        self.stops.get(&id)
    }

    /// All stops, by id.
    pub fn iter(&self) -> impl Iterator<Item = (StopId, &Stop)> {
        self.stops.iter().map(|(id, stop)| (*id, stop))
    }

    /// All stops in a process.
    pub fn in_process(&self, process: ProcessIndex) -> Vec<StopId> {
        let first = StopId { process, number: 0 };
        let last = StopId { process, number: u64::MAX };
        self.stops.range(first..=last).map(|(id, _)| *id).collect()
    }

    /// Whether anybody stands still in a process.
    pub fn any_in_process(&self, process: ProcessIndex) -> bool {
        let first = StopId { process, number: 0 };
        self.stops.range(first..).next().is_some_and(|(id, _)| id.process == process)
    }

    /// How many there are, those inside included.
    pub fn len(&self) -> usize {
        self.stops.len()
    }

    /// The first of each group, without `id`: with its reach, its clock, and who it is.
    pub fn firsts_but(&self, id: StopId) -> Vec<(ReachClass, VirtualTime, StopId)> {
        let groups = self.users.iter().chain(&self.waiting);
        let first = |(place, group): (&(ProcessIndex, ReachClass), &Group)| {
            let &(process, class) = place;
            let mut ids = group.iter().map(|(clock, number)| {
                let other = StopId { process, number: *number };
                (class, *clock, other)
            });
            ids.find(|(_, _, other)| *other != id)
        };
        groups.filter_map(first).collect()
    }

    /// Stops that only the user can end.
    pub fn users(&self) -> &Groups {
        &self.users
    }

    /// Stops that the rule will end.
    pub fn waiting(&self) -> &Groups {
        &self.waiting
    }

    /// What stops of this class affect: where they may still go; and, where
    /// somebody waits inside one of these processes, where that one may go.
    pub fn affected(&mut self, class: ReachClass, topology: &Topology) -> Arc<Processes> {
        if let Some(known) = self.affected.get(&class) {
            return known.clone();
        }
        let mut affected = topology.reach(&self.stacks[class.0 as usize], &self.safeguards);
        loop {
            let before = affected.len();
            for (process, inside) in self.inside.keys() {
                if affected.contains(process) {
                    let next = topology.reach(&self.stacks[inside.0 as usize], &self.safeguards);
                    affected.extend(next);
                }
            }
            if affected.len() == before {
                break;
            }
        }
        let affected = Arc::new(affected);
        self.affected.insert(class, affected.clone());
        affected
    }

    /// The topology, or who waits inside, has changed.
    pub fn forget_affected(&mut self) {
        self.affected.clear();
    }

    /// Nobody stands still: what was remembered about stacks can go.
    pub fn forget_classes_if_empty(&mut self) {
        if self.stops.is_empty() {
            self.classes.clear();
            self.stacks.clear();
            self.affected.clear();
        }
    }

    /// Call stacks come and go with processes: those that nobody stands with can go.
    fn forget_unused(&mut self) {
        let used: BTreeSet<ReachClass> = self.stops.values().map(|stop| stop.class).collect();
        let stacks = std::mem::take(&mut self.stacks);
        self.classes.clear();
        self.affected.clear();
        let mut renamed = BTreeMap::new();
        for (old, stack) in (0..).map(ReachClass).zip(stacks) {
            if used.contains(&old) {
                let new = ReachClass(self.stacks.len() as u32);
                self.classes.insert(stack.clone(), new);
                self.stacks.push(stack);
                renamed.insert(old, new);
            }
        }
        let stops: Vec<(StopId, Stop)> = self.stops.iter().map(|(id, stop)| (*id, *stop)).collect();
        (self.users, self.waiting) = (Groups::new(), Groups::new());
        self.inside.clear();
        self.stops.clear();
        for (id, stop) in stops {
            if let Some(&class) = renamed.get(&stop.class) {
                self.insert(id, Stop { class, ..stop });
            }
        }
    }

    fn groups(&mut self, reason: StopReason) -> &mut Groups {
        if reason.is_users() { &mut self.users } else { &mut self.waiting }
    }
}

#[cfg(test)]
mod tests {
    use ddbx_protocol::{AllOn, RealTime};

    use super::*;

    #[test]
    fn call_stacks_of_processes_that_are_gone_take_no_room() {
        let mut stops = Stops::new(AllOn);
        let topology = Topology::default();
        let clock = RealTime::default() - ddbx_protocol::Delay::ZERO;
        let id = |number| StopId { process: ProcessIndex(7), number };
        for number in 1..=3 {
            let class = stops.class(&Stack::home(ProcessIndex(7)).call(ProcessIndex(number)));
            let reason = if number == 3 { StopReason::Inside } else { StopReason::Process };
            stops.insert(id(number), Stop { reason, class, clock });
        }
        for passing in 100..100_000 {
            stops.class(&Stack::home(ProcessIndex(passing)));
        }
        assert!(stops.stacks.len() < 2 * UNUSED_MAX, "{}", stops.stacks.len());
        assert_eq!(stops.stacks.len(), stops.classes.len());
        for number in 1..=3 {
            let class = stops.get(id(number)).unwrap().class;
            let reach = Processes::from([ProcessIndex(7), ProcessIndex(number)]);
            assert!(stops.affected(class, &topology).is_superset(&reach));
            assert!(stops.remove(id(number)).is_some());
        }
        assert!(stops.users.is_empty() && stops.inside.is_empty() && stops.stops.is_empty());
    }
}
