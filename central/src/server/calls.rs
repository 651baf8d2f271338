//! The calls that are in flight: only the processes know them, so they are asked.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use ddbx_protocol::control::{Backtrace, CALLS_MAX, CallView, FrameView, Reply, Request};
use ddbx_protocol::{ControlId, Delay, HoldId, InFlight, ProcessIndex};
use tokio::time::{Instant, timeout_at};

use super::{ANSWER_MAX, ended};
use crate::driver::{Session, StandingCalls, millis};

/// All calls, asked of all processes at once. Whoever does not answer is left out.
pub(super) async fn in_flight(session: &Session) -> Reply {
    let until = Instant::now() + ANSWER_MAX;
    let Some(asked) = session.calls() else { return ended() };
    let mut calls = Vec::new();
    for (process, name, answer) in asked {
        if let Ok(Ok(answer)) = timeout_at(until, answer).await {
            calls.extend(answer.into_iter().map(|call| (process, name.clone(), call)));
        }
    }
    Reply::Calls(views(calls, &session.standing_calls()))
}

/// Calls with their processes as people see them, those of the oldest control first. Each
/// process has a clock of its own: so a caller comes before whom it calls whatever their ages.
fn views(
    mut calls: Vec<(ProcessIndex, String, InFlight)>,
    standing: &StandingCalls,
) -> Vec<CallView> {
    let stands = |process: ProcessIndex, call: &InFlight| {
        standing.get(&(process, call.control.clone(), call.depth))
    };
    // The greatest delay of each control at each depth.
    let mut delays: BTreeMap<(ControlId, u32), Delay> = BTreeMap::new();
    for (process, _, call) in &calls {
        let held = stands(*process, call).map(|(_, held)| *held);
        let delay = delays.entry((call.control.clone(), call.depth)).or_default();
        *delay = (*delay).max(call.delay + held.unwrap_or_default());
    }
    let mut ages: BTreeMap<ControlId, Duration> = BTreeMap::new();
    for (.., call) in &calls {
        let age = ages.entry(call.control.clone()).or_default();
        *age = (*age).max(call.age);
    }
    calls.sort_by_cached_key(|(.., call)| {
        let oldest = ages.get(&call.control).copied();
        (Reverse(oldest), call.control.clone(), call.depth, Reverse(call.age))
    });
    calls.truncate(CALLS_MAX);
    let view = |(process, name, call): (ProcessIndex, String, InFlight)| {
        let hold = stands(process, &call);
        // Whoever waits for another takes over its delay, and does not know that yet.
        let deeper = (call.control.clone(), call.depth.saturating_add(1))..;
        let of_it = |((control, _), _): &(&(ControlId, u32), &Delay)| *control == call.control;
        let deeper = delays.range(deeper).take_while(of_it).map(|(_, delay)| *delay).max();
        let delay = call.delay + hold.map(|(_, held)| *held).unwrap_or_default();
        CallView {
            process: name,
            age_ms: millis(call.age),
            remaining_ms: Some(remaining(&call, delay.max(deeper.unwrap_or_default()))),
            hold: hold.map(|(id, _)| *id),
            method: call.method,
            control: call.control,
            depth: call.depth,
        }
    };
    calls.into_iter().map(view).collect()
}

/// How a control came to where it stands: asked of all processes on its way.
pub(super) async fn backtrace(session: &Session, hold: HoldId) -> Reply {
    let view = match session.request(Request::Backtrace(hold)) {
        Some(Reply::Hit(view)) => view,
        Some(reply) => return reply,
        None => return ended(),
    };
    let way = session.way_of(hold).unwrap_or_default();
    let ask = |process| Some(session.calls_of(view.control.as_ref()?, process));
    let answers = way.iter().map(|(process, _)| ask(*process)).collect::<Vec<_>>();
    let until = Instant::now() + ANSWER_MAX;
    let mut frames = Vec::new();
    for (depth, ((_, name), answer)) in way.into_iter().zip(answers).enumerate() {
        let calls = match answer {
            Some(answer) => timeout_at(until, answer).await.ok().and_then(Result::ok),
            None => None,
        };
        let of_it = |call: &InFlight| call.depth as usize == depth;
        frames.push((name, calls.unwrap_or_default().into_iter().find(of_it)));
    }
    frames.reverse();
    // Where it stands its clock stands too. Those who wait for it have their delays from
    // when they called, and do not know yet that they will take over its.
    let delay = frames.iter().find_map(|(_, call)| Some(call.as_ref()?.delay));
    let delay = delay.unwrap_or_default() + Duration::from_millis(view.held_ms);
    let frames = frames.into_iter().map(|(name, call)| frame(name, call.as_ref(), delay));
    Reply::Backtrace(Backtrace { frames: frames.collect(), hold: view })
}

/// One process of a control's way; the control has this delay by now.
fn frame(process: String, call: Option<&InFlight>, delay: Delay) -> FrameView {
    FrameView {
        process,
        method: call.map(|call| call.method.clone()),
        age_ms: call.map(|call| millis(call.age)),
        remaining_ms: call.map(|call| remaining(call, delay)),
    }
}

/// What is left of a call's deadline, whose control has this delay by now.
fn remaining(call: &InFlight, delay: Delay) -> u64 {
    millis(call.due.since(call.now - delay))
}

#[cfg(test)]
mod tests {
    use ddbx_protocol::{MethodName, RealTime};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A call that came `age` ago, without delay, and whose deadline passes in a second.
    fn call(process: u64, control: &str, depth: u32, age: u32) -> (ProcessIndex, String, InFlight) {
        let now = RealTime::default() + 60_000 * MS;
        let call = InFlight {
            control: ControlId::new(control).unwrap(),
            method: MethodName::new("Walker.walk").unwrap(),
            depth,
            age: age * MS,
            delay: Delay::ZERO,
            due: (now - Delay::ZERO) + 1_000 * MS,
            now,
        };
        (ProcessIndex(process), format!("p{process}"), call)
    }

    #[test]
    fn who_waits_for_one_that_stands_has_its_clock() {
        let held = (ProcessIndex(2), ControlId::new("p0/held").unwrap(), 2);
        let standing = StandingCalls::from([(held, (HoldId(7), 300 * MS))]);
        // Another call of the same control, made beside it, runs.
        let calls = vec![
            call(3, "p0/held", 2, 310),
            call(2, "p0/held", 2, 320),
            call(1, "p0/held", 1, 330),
            call(1, "p0/runs", 1, 400),
        ];
        let views = views(calls, &standing);
        let seen: Vec<_> = views.iter().map(|v| (&*v.process, v.remaining_ms, v.hold)).collect();
        let expected = [
            ("p1", Some(1_000), None),
            ("p1", Some(1_300), None),
            ("p2", Some(1_300), Some(HoldId(7))),
            ("p3", Some(1_000), None),
        ];
        assert_eq!(seen, expected, "the oldest first");
    }

    #[test]
    fn of_many_calls_the_oldest_are_told() {
        let calls = (0..CALLS_MAX as u32 + 10).map(|age| call(1, "p0/main", 1, age));
        let views = views(calls.collect(), &StandingCalls::new());
        let ages = (views.first().map(|v| v.age_ms), views.last().map(|v| v.age_ms));
        assert_eq!((views.len(), ages), (CALLS_MAX, (Some(2_009), Some(10))));
    }
}
