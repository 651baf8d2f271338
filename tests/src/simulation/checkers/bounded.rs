//! No delay exceeds the total time during which the user held something.

use super::Pair;

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    let held = pair.debugged.held_total();
    match pair.debugged.events.iter().find(|event| event.delay.as_nanos() > held) {
        Some(event) => Err(format!(
            "{} is delayed by {}, but the user held for {held} ns",
            event.name, event.delay
        )),
        None => Ok(()),
    }
}
