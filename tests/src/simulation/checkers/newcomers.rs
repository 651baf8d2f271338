//! Who comes from outside after a stop does not sit through its length: at its
//! first event it waits no longer than the user held something since it came.

use super::Pair;

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    // News of a hold's end travel to central and from there; and in ask mode the
    // question does, too.
    let allowed_for_news = 4 * u128::from(pair.latency_max());
    for stood in pair.debugged.stood.iter().filter(|stood| stood.came_in_peace) {
        let Some(until) = stood.until else { continue };
        let held: u128 = pair
            .debugged
            .held
            .iter()
            .map(|(from, to)| (*to).min(until).since((*from).max(stood.from)).as_nanos())
            .sum();
        let waited = until.since(stood.from).as_nanos();
        if waited > held + allowed_for_news {
            let place = stood.process;
            return Err(format!(
                "a newcomer in {place} waited {waited} ns, {held} ns of them held"
            ));
        }
    }
    Ok(())
}
