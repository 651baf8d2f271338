//! Every event of the run without the debugger happens, and no other, each at
//! its virtual time.

use super::Pair;
use crate::simulation::trace::{Happened, What};

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    let (with, without) = (pair.debugged.clocks(), pair.undisturbed.clocks());
    // When a handler that was dropped has left depends on who dropped it, and is
    // seen in what happens next.
    let counts = |what: What| what != What::Left;
    for event in pair.debugged.events.iter().filter(|event| counts(event.what)) {
        let (name, clock) = (&*event.name, event.clock());
        match without.get(name) {
            None => return Err(format!("{name} happens only with the debugger")),
            Some(expected) if *expected != clock => {
                return Err(format!(
                    "{name} at {} with the debugger, at {} without",
                    clock.as_nanos(),
                    expected.as_nanos()
                ));
            }
            Some(_) => {}
        }
    }
    let missing = |event: &&Happened| counts(event.what) && !with.contains_key(&*event.name);
    match pair.undisturbed.events.iter().find(missing).map(|event| &event.name) {
        Some(name) => Err(format!("{name} happens only without the debugger")),
        None => Ok(()),
    }
}
