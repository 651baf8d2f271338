//! A process that handles one request at a time does so in virtual time too.

use std::collections::BTreeMap;

use super::Pair;
use crate::simulation::trace::What;

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    let mut stays = BTreeMap::new();
    for event in &pair.debugged.events {
        let key = (event.process, &event.strand);
        match event.what {
            What::Entered => {
                stays.insert(key, (event.clock(), event.clock()));
            }
            What::Left => {
                if let Some(stay) = stays.get_mut(&key) {
                    stay.1 = event.clock();
                }
            }
            _ => {}
        }
    }
    let mut sorted: Vec<_> =
        stays.iter().map(|((process, name), stay)| (*process, *stay, name)).collect();
    sorted.sort();
    for pair in sorted.windows(2) {
        let ((process, (_, left), first), (other, (entered, _), second)) = (&pair[0], &pair[1]);
        if process == other && entered < left {
            return Err(format!("{second} entered process {process} before {first} had left"));
        }
    }
    Ok(())
}
