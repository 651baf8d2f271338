//! With a debugger latency of δ: only events closer than 2δ may swap, and until
//! the first swap virtual times shift by at most 2δ. After it, programs may
//! rightly go another way.
//!
//! That is for one hold. What comes within 2δ of a hold learns of its end late, and
//! goes on late by as much; if it also comes that close to the next hold, the two
//! add up. So the bound is 2δ for every hold that has begun.

use std::collections::BTreeMap;

use super::{Pair, control};
use crate::simulation::trace::{Happened, Trace, What};

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    let latency = i64::try_from(pair.latency_max()).unwrap_or(i64::MAX);
    let without = pair.undisturbed.clocks();
    let expected = by_process(&pair.undisturbed);
    let mut place: BTreeMap<usize, usize> = BTreeMap::new();
    for event in pair.debugged.events.iter().filter(|event| event.what.is_gated()) {
        let holds = pair.debugged.holds_at.iter().filter(|at| **at <= event.at).count();
        let window = 2 * latency * holds.max(1) as i64;
        let next = place.entry(event.process).or_default();
        let expected = expected.get(&event.process).and_then(|events| events.get(*next));
        *next += 1;
        let clock = without.get(&*event.name).map(|clock| clock.as_nanos());
        if expected.is_some_and(|expected| expected.name == event.name) {
            let shift = event.clock().as_nanos() - clock.unwrap_or_default();
            if shift.abs() > window {
                let name = &event.name;
                return Err(format!("{name} shifted by {shift} ns, more than {window}"));
            }
            continue;
        }
        // Something else comes first, or happens at all: it must be close.
        let clock = clock.unwrap_or(event.clock().as_nanos());
        let apart = expected.map(|expected| (expected.clock().as_nanos() - clock).abs());
        let close = apart.is_some_and(|apart| apart <= window) || is_close(pair, event, window);
        // A newcomer has no virtual past; where it comes in depends on what has
        // been heard of holds by then.
        let newcomer = [Some(event), expected.copied()]
            .into_iter()
            .flatten()
            .any(|event| event.what == What::Started && pair.is_outside(control(&event.name)));
        if close || newcomer {
            return Ok(());
        }
        return Err(format!(
            "{} instead of {:?}, {apart:?} ns apart",
            event.name,
            expected.map(|e| &e.name)
        ));
    }
    Ok(())
}

/// Whether something else happens that close to it, here, without the debugger.
fn is_close(pair: &Pair<'_>, event: &Happened, window: i64) -> bool {
    let clock = event.clock().as_nanos();
    pair.undisturbed.events.iter().any(|other| {
        other.process == event.process
            && other.name != event.name
            && (other.clock().as_nanos() - clock).abs() <= window
    })
}

fn by_process(trace: &Trace) -> BTreeMap<usize, Vec<&Happened>> {
    let mut all: BTreeMap<usize, Vec<&Happened>> = BTreeMap::new();
    for event in trace.events.iter().filter(|event| event.what.is_gated()) {
        all.entry(event.process).or_default().push(event);
    }
    all
}
