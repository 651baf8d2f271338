//! In each process, events of different controls that are strictly ordered
//! without the debugger keep their order.

use std::collections::BTreeMap;

use ddbx_protocol::VirtualTime;

use super::Pair;
use crate::simulation::trace::Happened;

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    let without = pair.undisturbed.clocks();
    let mut latest: BTreeMap<usize, (VirtualTime, &Happened)> = BTreeMap::new();
    for event in pair.debugged.events.iter().filter(|event| event.what.is_gated()) {
        let Some(&clock) = without.get(&*event.name) else {
            continue;
        };
        match latest.get(&event.process) {
            Some((seen, overtaker)) if *seen > clock => {
                return Err(format!("{} overtook {}", overtaker.name, event.name));
            }
            _ => {
                latest.insert(event.process, (clock, event));
            }
        }
    }
    Ok(())
}
