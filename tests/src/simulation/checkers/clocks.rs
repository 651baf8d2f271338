//! Every event of the run without the debugger happens, and no other, each at
//! its virtual time.

use super::Pair;

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    let (with, without) = (pair.debugged.clocks(), pair.undisturbed.clocks());
    for event in &pair.debugged.events {
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
    match without.keys().find(|name| !with.contains_key(*name)) {
        Some(name) => Err(format!("{name} happens only without the debugger")),
        None => Ok(()),
    }
}
