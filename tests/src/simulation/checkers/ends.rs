//! All controls end once the user's holds are released: no deadlock, no
//! starvation.

use super::Pair;

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    if let Some(stuck) = pair.undisturbed.stuck.first() {
        return Err(format!("the program itself does not end: {stuck}"));
    }
    match pair.debugged.stuck.first() {
        Some(stuck) => Err(format!("{stuck} never ended ({} in all)", pair.debugged.stuck.len())),
        None => Ok(()),
    }
}
