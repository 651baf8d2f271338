//! In each process, events of different controls that are strictly ordered
//! without the debugger keep their order.

use std::collections::BTreeMap;

use ddbx_protocol::VirtualTime;

use super::Pair;
use crate::simulation::trace::Happened;

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    match first_swap(pair) {
        Some((earlier, later, _)) => Err(format!("{} overtook {}", earlier.name, later.name)),
        None => Ok(()),
    }
}

/// The first event that comes too late, with one that overtook it, and how far
/// apart they are without the debugger.
pub(super) fn first_swap<'a>(pair: &'a Pair<'_>) -> Option<(&'a Happened, &'a Happened, u128)> {
    let without = pair.undisturbed.clocks();
    let mut latest: BTreeMap<usize, (VirtualTime, &Happened)> = BTreeMap::new();
    for event in pair.debugged.events.iter().filter(|event| event.what.is_gated()) {
        let Some(&clock) = without.get(&*event.name) else { continue };
        match latest.get(&event.process) {
            Some((seen, overtaker)) if *seen > clock => {
                return Some((overtaker, event, seen.since(clock).as_nanos()));
            }
            _ => {
                latest.insert(event.process, (clock, event));
            }
        }
    }
    None
}
