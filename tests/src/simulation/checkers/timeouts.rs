//! The same deadlines and leases run out, at the same virtual times.

use std::collections::BTreeMap;

use super::Pair;
use crate::simulation::trace::Trace;

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    let (with, without) = (timeouts(&pair.debugged), timeouts(&pair.undisturbed));
    if with == without {
        return Ok(());
    }
    let different = with.iter().find(|(name, clock)| without.get(*name) != Some(clock));
    let different = different.or_else(|| without.iter().find(|(n, c)| with.get(*n) != Some(c)));
    Err(format!("{different:?} differs: with {}, without {}", with.len(), without.len()))
}

pub(super) fn timeouts(trace: &Trace) -> BTreeMap<&str, i64> {
    let timeouts = trace.events.iter().filter(|event| event.what.is_timeout());
    timeouts.map(|event| (&*event.name, event.clock().as_nanos())).collect()
}
