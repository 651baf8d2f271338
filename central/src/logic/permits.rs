//! From all stops of a session to what each process must know.
//!
//! A stop of the user's ends when the user says so. A stop by the rule ends when
//! nobody that is not ahead of it stands still and its delay has reached that of
//! everybody else. So for each process there is
//!
//! - an *open* clock: the earliest of the stops that affect it and whose end is
//!   unknown. These are the user's, and, step by step, those by the rule that
//!   are not behind the open clock of the process they stand in. The least set
//!   closed under that step is the right one: stops that wait only for each
//!   other (ties) are not in it and go together.
//! - a staircase of *timed* stops: those by the rule that are behind the open
//!   clock of their process. Each leaves with the greatest delay demanded where
//!   it stands: the floor there, or the delay with which another timed stop that
//!   is not ahead of it will leave. Telling this in advance spares chains of
//!   waits the sum of their messages' latencies.
//!
//! Of all this only what can make a difference is kept: the earliest open clock,
//! and those timed stops that leave with more than any that are further behind.

use std::collections::{BTreeMap, BTreeSet};

use ddbx_protocol::{Delay, ProcessIndex, Safeguards, StopId, VirtualTime};

use super::stops::{Group, Stops};
use super::topology::Topology;

/// The greatest delay of any client so far, by process. Absent: never delayed.
pub type Floors = BTreeMap<ProcessIndex, Delay>;

/// What a process must know of the stops elsewhere, in central's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The open stop that is furthest behind.
    pub open: Option<(VirtualTime, StopId)>,
    /// Timed stops, furthest behind first; each leaves with more than the last.
    pub timed: Vec<(VirtualTime, Delay, StopId)>,
}

impl Known {
    /// Whether there is nothing to know.
    pub fn is_empty(&self) -> bool {
        self.open.is_none() && self.timed.is_empty()
    }

    fn add_open(&mut self, clock: VirtualTime, by: StopId) -> bool {
        let earlier = self.open.is_none_or(|(known, _)| clock < known);
        if earlier {
            self.open = Some((clock, by));
        }
        earlier
    }

    /// Adds a stair unless one that is not ahead of it leaves with as much.
    fn add_timed(&mut self, clock: VirtualTime, leaves_with: Delay, by: StopId) -> bool {
        let dominates =
            |a: &(VirtualTime, Delay, StopId), clock, delay| a.0 <= clock && a.1 >= delay;
        if self.timed.iter().any(|stair| dominates(stair, clock, leaves_with)) {
            return false;
        }
        self.timed.retain(|stair| !(clock <= stair.0 && leaves_with >= stair.1));
        let place = self.timed.partition_point(|stair| stair.0 < clock);
        self.timed.insert(place, (clock, leaves_with, by));
        true
    }

    fn demanded(&self, floor: Delay, clock: VirtualTime) -> Delay {
        let stairs = self.timed.iter().take_while(|stair| stair.0 <= clock);
        stairs.map(|stair| stair.1).fold(floor, Delay::max)
    }
}

/// Computes what every process must know; those that need know nothing are absent.
pub fn known<S: Safeguards>(
    stops: &mut Stops<S>,
    topology: &Topology,
    floors: &Floors,
) -> BTreeMap<ProcessIndex, Known> {
    let open = open_clocks(stops, topology);
    let mut all = without_own_holds(stops, topology, &open);
    add_timed(stops, topology, floors, &open, &mut all);
    all.retain(|_, known| !known.is_empty());
    all
}

type OpenClocks = BTreeMap<ProcessIndex, Known>;

/// The open clock of every process that has one.
fn open_clocks<S: Safeguards>(stops: &mut Stops<S>, topology: &Topology) -> OpenClocks {
    let mut open = OpenClocks::new();
    for ((process, class), first) in firsts(stops.users()) {
        for &affected in stops.affected(class, topology).iter() {
            open.entry(affected).or_default().add_open(first.0, id(process, first.1));
        }
    }
    let places: Vec<_> = stops.waiting().keys().copied().collect();
    loop {
        let mut changed = false;
        for &(process, class) in &places {
            let Some(first) = first_not_behind(&stops.waiting()[&(process, class)], &open, process)
            else {
                continue;
            };
            for &affected in stops.affected(class, topology).iter() {
                let known = open.entry(affected).or_default();
                changed |= known.add_open(first.0, id(process, first.1));
            }
        }
        if !changed {
            return open;
        }
    }
}

/// The same, but no process is told of the user's stops that stand in itself: it
/// knows them, and is the first to know when they end.
fn without_own_holds<S: Safeguards>(
    stops: &mut Stops<S>,
    topology: &Topology,
    open: &OpenClocks,
) -> BTreeMap<ProcessIndex, Known> {
    let mut told: BTreeMap<ProcessIndex, Known> = BTreeMap::new();
    for ((process, class), first) in firsts(stops.users()) {
        for &affected in stops.affected(class, topology).iter().filter(|p| **p != process) {
            told.entry(affected).or_default().add_open(first.0, id(process, first.1));
        }
    }
    let places: Vec<_> = stops.waiting().keys().copied().collect();
    for (process, class) in places {
        let group = &stops.waiting()[&(process, class)];
        if let Some(first) = first_not_behind(group, open, process) {
            for &affected in stops.affected(class, topology).iter().filter(|p| **p != process) {
                told.entry(affected).or_default().add_open(first.0, id(process, first.1));
            }
        }
    }
    told
}

/// Adds the timed stops, until no more follow from those that are there.
fn add_timed<S: Safeguards>(
    stops: &mut Stops<S>,
    topology: &Topology,
    floors: &Floors,
    open: &OpenClocks,
    all: &mut BTreeMap<ProcessIndex, Known>,
) {
    let floor = |process| floors.get(&process).copied().unwrap_or_default();
    let places: Vec<_> = stops.waiting().keys().copied().collect();
    loop {
        let mut changed = false;
        for &(process, class) in &places {
            let here = all.get(&process).cloned().unwrap_or_default();
            let group = &stops.waiting()[&(process, class)];
            // The first stop of the group, and the first at or after each stair.
            let steps = here.timed.iter().map(|stair| stair.0);
            let starts: BTreeSet<VirtualTime> = steps.chain(group.first().map(|f| f.0)).collect();
            let open_clock = open.get(&process).and_then(|known| known.open);
            let mut leaving = Vec::new();
            for start in starts {
                let Some(&(clock, number)) = group.range((start, 0)..).next() else {
                    continue;
                };
                if open_clock.is_none_or(|(open, _)| clock < open) {
                    let leaves_with = here.demanded(floor(process), clock);
                    leaving.push((clock, leaves_with, id(process, number)));
                }
            }
            for &affected in stops.affected(class, topology).iter().filter(|p| **p != process) {
                for &(clock, leaves_with, by) in &leaving {
                    if leaves_with > floor(affected) {
                        let known = all.entry(affected).or_default();
                        changed |= known.add_timed(clock, leaves_with, by);
                    }
                }
            }
        }
        if !changed {
            return;
        }
    }
}

fn firsts(
    groups: &super::stops::Groups,
) -> Vec<((ProcessIndex, super::stops::ReachClass), (VirtualTime, u64))> {
    groups.iter().filter_map(|(place, group)| Some((*place, *group.first()?))).collect()
}

/// The first stop of a group that the open clock of its process blocks.
fn first_not_behind(
    group: &Group,
    open: &OpenClocks,
    process: ProcessIndex,
) -> Option<(VirtualTime, u64)> {
    let (clock, _) = open.get(&process)?.open?;
    group.range((clock, 0)..).next().copied()
}

fn id(process: ProcessIndex, number: u64) -> StopId {
    StopId { process, number }
}
