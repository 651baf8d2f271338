//! Plain programs, held call by call: the delays are those of Algorithm D
//! offline.
//!
//! Offline, an execution waits only where it enters another process by RPC, and
//! its processes are those of its fragments. Online it waits at every gated
//! event, and what counts is what it *may* enter. So the run without the debugger
//! is written down with every gated event as a short fragment in its process,
//! entered from a process of the execution's own, and with a tail, after all is
//! over, that visits everything it may enter. Then the same algorithm must give
//! the same delays.

use std::collections::BTreeMap;

use ddbx_central::logic::algorithm_d::{ExecutionIndex, Mode, ProgramBuilder, plan};

use super::{Pair, control};

/// Undelayed times are stretched, so that the short fragments fit between them.
const STRETCH: u64 = 64;

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    let mut controls: BTreeMap<&str, Vec<(&str, usize, u64)>> = BTreeMap::new();
    for event in pair.undisturbed.events.iter().filter(|event| event.what.is_gated()) {
        let root = control(&event.name);
        let events = controls.entry(root).or_default();
        // A control can have several events at one moment, one after the other.
        let earliest = events.last().map_or(0, |(_, _, time)| time + 2);
        let time = ((event.clock().as_nanos() as u64 + 1) * STRETCH).max(earliest);
        events.push((&event.name, event.process, time));
    }
    let end = controls.values().flatten().map(|(_, _, time)| *time).max().unwrap_or(0);
    let mut builder = ProgramBuilder::default();
    for (root, events) in &controls {
        let mut fragments = Vec::new();
        let mut last = 0;
        for (_, process, time) in events {
            fragments.push((format!("only {root}"), time - last));
            fragments.push((process.to_string(), 1));
            last = time + 1;
        }
        fragments.push((format!("only {root}"), end + STRETCH - last));
        fragments.extend(reach(pair, root).into_iter().map(|process| (process.to_string(), 1)));
        let valid = "times are positive and small";
        builder.execution(root, fragments).expect(valid);
        for (place, (name, ..)) in events.iter().enumerate() {
            if let Some(held) = pair.debugged.held_at.get(*name) {
                builder.breakpoint(root, 2 * place as u64 + 2, held * STRETCH).expect(valid);
            }
        }
    }
    let program = builder.build();
    let plan = plan(&program, Mode::Virtual).map_err(|error| error.to_string())?;
    let debugged: BTreeMap<&str, u64> =
        pair.debugged.events.iter().map(|event| (&*event.name, event.delay.as_nanos())).collect();
    for (index, events) in (0..).map(ExecutionIndex).zip(controls.values()) {
        let fragments = &program.execution(index).fragments;
        let mut delay = 0;
        let mut delays = Vec::new();
        for (planned, fragment) in plan.fragments(&program, index).zip(fragments) {
            delay += planned.propagated + fragment.breakpoint;
            delays.push(delay / STRETCH);
        }
        for (place, (name, ..)) in events.iter().enumerate() {
            let (expected, actual) = (delays[2 * place + 1], debugged.get(name).copied());
            if actual != Some(expected) {
                return Err(format!("{name} is delayed by {actual:?}, offline by {expected}"));
            }
        }
    }
    Ok(())
}

fn reach(pair: &Pair<'_>, root: &str) -> Vec<usize> {
    let index: usize = root.trim_start_matches("root").parse().unwrap_or(0);
    let connections = pair.program.connections();
    let mut reach = vec![pair.program.roots[index].process];
    let mut next = 0;
    while next < reach.len() {
        for (from, to) in &connections {
            if *from == reach[next] && !reach.contains(to) {
                reach.push(*to);
            }
        }
        next += 1;
    }
    reach
}
