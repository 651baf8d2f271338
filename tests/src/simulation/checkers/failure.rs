//! When things go wrong: delays never shrink, nobody stays held longer than the
//! lease, and nothing times out that would not have.

use ddbx_protocol::session::{HEARTBEAT, LEASE};

use ddbx_protocol::Mode;

use super::Pair;
use super::timeouts::timeouts;
use crate::simulation::scenario::FaultKind;
use crate::simulation::trace::Stood;

pub(super) fn check(pair: &Pair<'_>) -> Result<(), String> {
    let trace = &pair.debugged;
    if trace.floor_fell {
        return Err("the floor of a process fell".to_owned());
    }
    if let Some(stood) = trace.stood.iter().find(|stood| stood.delay_after < stood.delay_before) {
        let place = stood.process;
        return Err(format!("a delay in process {place} shrank while it stood"));
    }
    let faults = pair.scenario.faults.iter().zip(&trace.faults_at);
    for (fault, at) in faults {
        let noticed = match fault.kind {
            FaultKind::Crash(_) | FaultKind::Cut(..) | FaultKind::CentralCrash(_) => *at,
            FaultKind::HalfOpen(..) => *at + LEASE,
            FaultKind::Stall(_) => continue,
        };
        let limit = noticed + LEASE + HEARTBEAT;
        let all_lost = matches!(fault.kind, FaultKind::CentralCrash(_));
        // Where only one is lost, others may still be held, or catch up.
        let held = trace.held.iter().any(|(from, to)| *from < limit && *to > *at);
        let overdue =
            |stood: &&Stood| stood.from < *at && stood.until.is_none_or(|until| until > limit);
        if (all_lost || !held)
            && let Some(stood) = trace.stood.iter().find(overdue)
        {
            return Err(format!("a strand in process {} stayed held", stood.process));
        }
    }
    check_timeouts(pair)
}

/// Where nothing depends on order and all that goes wrong is that central dies,
/// the same calls time out. (A satellite alone among others that go on holding
/// cannot know of holds that begin meanwhile.)
fn check_timeouts(pair: &Pair<'_>) -> Result<(), String> {
    let central_dies = |kind: &FaultKind| matches!(kind, FaultKind::CentralCrash(_));
    let comparable = pair.scenario.mode == Mode::Permit
        && pair.latency_max() == 0
        && !pair.program.depends_on_order()
        && pair.scenario.faults.iter().all(|fault| central_dies(&fault.kind))
        && pair.scenario.pauses.is_empty()
        && pair.scenario.forces.is_empty();
    if !comparable {
        return Ok(());
    }
    // Which of its two ends notices first is not compared: a loss can give the
    // older of two timers more time.
    let call = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
    let without: Vec<String> = timeouts(&pair.undisturbed).keys().map(|name| call(name)).collect();
    // And what was dropped with its caller may live to see its own deadline.
    let expected = |name: &&str| {
        let call = call(name);
        without.iter().any(|other| call == *other || call.starts_with(&format!("{other}>")))
    };
    // And who waits for whom on a connection is a matter of order, which a loss
    // does not keep.
    let hindered = pair.debugged.hindered.union(&pair.undisturbed.hindered);
    let hindered: Vec<_> = hindered.collect();
    let by_chance = |name: &&str| {
        let call = call(name);
        hindered.iter().any(|other| call.starts_with(&***other) || other.starts_with(&call))
    };
    let strange = |name: &&&str| !expected(name) && !by_chance(name);
    match timeouts(&pair.debugged).keys().find(strange) {
        Some(name) => Err(format!("{name} only because of the debugger")),
        None => Ok(()),
    }
}
