//! Permits give the same delays as asking central at every event.

use ddbx_protocol::Mode;

use super::Pair;
use crate::simulation::scenario::Scenario;
use crate::simulation::world::run;

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    let asked = run(pair.program, &Scenario { mode: Mode::Ask, ..pair.scenario.clone() });
    let expected: std::collections::BTreeMap<_, _> =
        asked.events.iter().map(|event| (&event.name, event.delay)).collect();
    for event in pair.debugged.events.iter().filter(|event| event.what.is_gated()) {
        match expected.get(&event.name) {
            Some(delay) if *delay == event.delay => {}
            other => {
                return Err(format!(
                    "{} is delayed by {}, in ask mode by {other:?}",
                    event.name, event.delay
                ));
            }
        }
    }
    Ok(())
}
