//! Nobody hears anything who is not concerned.

use std::collections::BTreeSet;

use ddbx_protocol::Mode;

use super::Pair;
use crate::simulation::program::Op;

/// Without a hold, no debugger message at all.
pub(super) fn check_steady(pair: &Pair<'_>) -> Result<(), String> {
    let late = pair.program.processes.iter().any(|process| process.joins_at.is_some());
    if pair.undisturbed.messages.is_empty() || late || pair.program.connects_late {
        return Ok(());
    }
    Err(format!("messages without any hold: {:?}", pair.undisturbed.messages))
}

/// A process that no held strand can reach, directly or through others that
/// wait for it, hears nothing.
pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    if pair.scenario.mode == Mode::Ask
        || pair.program.processes.iter().any(|p| p.joins_at.is_some())
    {
        return Ok(());
    }
    let mut concerned = pair.debugged.held_in.clone();
    concerned.extend(pair.scenario.pauses.iter().map(|(process, ..)| *process));
    let homes = homes(pair);
    loop {
        let before = concerned.len();
        for home in &homes {
            if !home.is_disjoint(&concerned) {
                concerned.extend(home);
            }
        }
        if concerned.len() == before {
            break;
        }
    }
    match pair.debugged.messages_by_process.keys().find(|process| !concerned.contains(process)) {
        Some(process) => {
            Err(format!("process {process} heard something, concerned: {concerned:?}"))
        }
        None => Ok(()),
    }
}

/// What each control, by where it starts, can reach.
fn homes(pair: &Pair<'_>) -> Vec<BTreeSet<usize>> {
    let connections = pair.program.connections();
    let mut starts: BTreeSet<usize> = pair.program.roots.iter().map(|root| root.process).collect();
    for (process, script) in pair.program.scripts() {
        crate::simulation::program::each_op(script, &mut |op| {
            if matches!(op, Op::Spawn(_) | Op::Renew { .. }) {
                starts.insert(process);
            }
        });
    }
    starts
        .into_iter()
        .map(|start| {
            let mut reach = BTreeSet::from([start]);
            loop {
                let next: BTreeSet<usize> = connections
                    .iter()
                    .filter(|(from, to)| reach.contains(from) && !reach.contains(to))
                    .map(|(_, to)| *to)
                    .collect();
                if next.is_empty() {
                    return reach;
                }
                reach.extend(next);
            }
        })
        .collect()
}
