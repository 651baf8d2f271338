//! Ask mode: the rule, word for word, over everybody who stands still.
//!
//! This is the protocol of the paper's appendix (suspend, ask, continue or wait
//! for an alarm) with the corrected rule. It costs a round trip for every event;
//! it is here as the reference that permits are checked against, and shares
//! with them only the table of stops.

use std::collections::{BTreeMap, BTreeSet};

use ddbx_protocol::{Delay, ProcessIndex, RealTime, Safeguards, StopId, StopReason};

use super::permits::Floors;
use super::stops::Stops;
use super::topology::{Processes, Topology};

/// Who may go on now, with which delay; and when to look again.
pub struct Evaluation {
    /// In the order in which they were found.
    pub granted: Vec<(StopId, Delay)>,
    /// When somebody's delay will have reached what is demanded.
    pub alarm: Option<RealTime>,
}

/// Evaluates the rule until nobody more may go on. `asked` are the delays with
/// which the waiting stops came; processes in `at_once` do not wait for the
/// floor, because somebody they waited for is gone without a word.
pub fn evaluate<S: Safeguards>(
    now: RealTime,
    stops: &mut Stops<S>,
    topology: &Topology,
    floors: &mut Floors,
    asked: &mut BTreeMap<StopId, Delay>,
    at_once: &Processes,
) -> Evaluation {
    let mut granted = Vec::new();
    loop {
        let going = may_go(now, stops, topology, floors, at_once);
        for (&id, &delay) in &leaving(&going, stops, topology, floors, asked) {
            let Some(stop) = stops.remove(id) else { continue };
            asked.remove(&id);
            for &affected in stops.affected(stop.class, topology).iter() {
                let floor = floors.entry(affected).or_default();
                *floor = (*floor).max(delay);
            }
            granted.push((id, delay));
        }
        if going.is_empty() {
            break;
        }
    }
    let waiting = stops.iter().filter(|(_, stop)| stop.reason == StopReason::Delay);
    let due = waiting.map(|(id, stop)| stop.clock + floor(floors, id.process));
    let alarm = due.filter(|due| *due > now).min();
    Evaluation { granted, alarm }
}

/// The greatest set of waiting stops that may all go on now: each has reached
/// the delay of every client that runs; no client that is not ahead of it
/// stands still, except those at the same delay that go on with it.
fn may_go<S: Safeguards>(
    now: RealTime,
    stops: &mut Stops<S>,
    topology: &Topology,
    floors: &Floors,
    at_once: &Processes,
) -> BTreeSet<StopId> {
    let all: Vec<_> = stops.iter().map(|(id, stop)| (id, *stop)).collect();
    let standing: Vec<_> =
        all.iter().filter(|(_, stop)| stop.reason != StopReason::Inside).collect();
    let mut affects = BTreeMap::new();
    for (id, stop) in &standing {
        affects.insert(*id, stops.affected(stop.class, topology));
    }
    let mut going: BTreeSet<StopId> = standing
        .iter()
        .filter(|(_, stop)| stop.reason == StopReason::Delay)
        .filter(|(id, stop)| {
            let caught_up = stop.clock + floor(floors, id.process) <= now;
            caught_up || at_once.contains(&id.process)
        })
        .map(|(id, _)| *id)
        .collect();
    loop {
        let blocked = standing.iter().filter(|(id, _)| going.contains(id)).find(|(id, stop)| {
            standing.iter().any(|(other, by)| {
                let together = by.clock == stop.clock && going.contains(other);
                other != id
                    && affects[other].contains(&id.process)
                    && by.clock <= stop.clock
                    && !together
            })
        });
        let Some((id, _)) = blocked else { return going };
        going.remove(id);
    }
}

/// The delays with which they go: at least what they came with and the floor
/// where they stand; and those that go together, with the greatest of each other.
fn leaving<S: Safeguards>(
    going: &BTreeSet<StopId>,
    stops: &mut Stops<S>,
    topology: &Topology,
    floors: &Floors,
    asked: &BTreeMap<StopId, Delay>,
) -> BTreeMap<StopId, Delay> {
    let came_with = |id| asked.get(&id).copied().unwrap_or_default();
    let mut delays: BTreeMap<StopId, Delay> =
        going.iter().map(|id| (*id, came_with(*id).max(floor(floors, id.process)))).collect();
    loop {
        let mut changed = false;
        for &by in going {
            let Some(class) = stops.get(by).map(|stop| stop.class) else { continue };
            let affected = stops.affected(class, topology);
            for &id in going.iter().filter(|id| affected.contains(&id.process)) {
                let tied = stops.get(id).map(|s| s.clock) == stops.get(by).map(|s| s.clock);
                if tied && delays[&id] < delays[&by] {
                    delays.insert(id, delays[&by]);
                    changed = true;
                }
            }
        }
        if !changed {
            return delays;
        }
    }
}

fn floor(floors: &Floors, process: ProcessIndex) -> Delay {
    floors.get(&process).copied().unwrap_or_default()
}
