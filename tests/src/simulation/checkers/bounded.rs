//! No delay exceeds the total time during which the user held something.

use ddbx_protocol::Mode;

use super::Pair;

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    if pair.scenario.mode == Mode::Ask && pair.latency_max() > 0 {
        // The way of a question can be charged to whoever is dropped on it.
        return Ok(());
    }
    let held = pair.debugged.held_total();
    match pair.debugged.events.iter().find(|event| event.delay.as_nanos() > held) {
        Some(event) => Err(format!(
            "{} is delayed by {}, but the user held for {held} ns",
            event.name, event.delay
        )),
        None => Ok(()),
    }
}
