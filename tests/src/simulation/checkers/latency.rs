//! With a debugger latency of δ: only events closer than 2δ may swap, and until
//! the first swap virtual times shift by at most 2δ. After it, programs may
//! rightly go another way.

use super::Pair;
use super::order::first_swap;

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    let window = 2 * i64::try_from(pair.latency_max()).unwrap_or(i64::MAX);
    let without = pair.undisturbed.clocks();
    let swap = first_swap(pair);
    if let Some((overtaker, overtaken, apart)) = swap
        && apart > window as u128
        && first_strange(pair).is_none_or(|strange| overtaken.at <= strange)
    {
        return Err(format!(
            "{} overtook {}, {apart} ns apart, more than {window}",
            overtaker.name, overtaken.name
        ));
    }
    let swapped_at = swap.map(|(_, overtaken, _)| overtaken.at);
    for event in &pair.debugged.events {
        if swapped_at.is_some_and(|at| event.at >= at) {
            break;
        }
        let clock = event.clock().as_nanos();
        let Some(expected) = without.get(&*event.name).map(|clock| clock.as_nanos()) else {
            // Something else happened: that, too, must have been a close thing.
            let close = |other: &&crate::simulation::trace::Happened| {
                other.process == event.process && (other.clock().as_nanos() - clock).abs() <= window
            };
            if pair.undisturbed.events.iter().any(|other| close(&other)) {
                break;
            }
            return Err(format!("{} happens only with the debugger", event.name));
        };
        if (clock - expected).abs() > window {
            return Err(format!(
                "{} shifted by {} ns, more than {window}",
                event.name,
                clock - expected
            ));
        }
    }
    Ok(())
}

/// When something first happened that does not happen without the debugger.
fn first_strange(pair: &Pair<'_>) -> Option<ddbx_protocol::RealTime> {
    let without = pair.undisturbed.clocks();
    let strange = pair.debugged.events.iter().find(|event| !without.contains_key(&*event.name));
    strange.map(|event| event.at)
}
