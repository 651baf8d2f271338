//! What the session has said last.

use std::collections::BTreeMap;

use ddbx_protocol::DroppedHere;
use ddbx_protocol::control::{
    Backtrace, BreakpointView, CallView, Dropped, HOLDS_MAX, HoldReason, HoldView, ProcessView,
    ReplayView, Reply, Request, SessionView, WatchView, Whom,
};

/// How much a new rate counts against the old one.
const RATE_WEIGHT: f64 = 0.4;

/// A rate over a shorter time says nothing.
const RATE_MS_MIN: u64 = 200;

/// All that was heard.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// How the session is.
    pub session: Option<SessionView>,
    /// How much later it is by the clock of the session than by that of the screen.
    ahead_ms: i64,
    /// Who takes part.
    pub processes: Vec<ProcessView>,
    /// Who stands still.
    pub holds: Vec<HoldView>,
    /// What is in flight.
    pub calls: Vec<CallView>,
    /// Where controls are stopped.
    pub breakpoints: Vec<BreakpointView>,
    /// How far a replay has come.
    pub replay: Vec<ReplayView>,
    /// Watched values.
    pub watched: Vec<WatchView>,
    /// How the hold that is looked at came to where it stands.
    pub backtrace: Option<Backtrace>,
    pub(super) rates: Rates,
}

/// How many calls each process makes and serves.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates(BTreeMap<String, Rate>);

impl Rates {
    /// So many in a second.
    pub(super) fn set(&mut self, process: &str, per_second: f64) {
        self.0.insert(process.to_owned(), Rate { count: 0, at_ms: 0, per_second });
    }
}

#[derive(Clone, Copy, Debug)]
struct Rate {
    count: u64,
    at_ms: u64,
    per_second: f64,
}

impl Seen {
    /// Keeps an answer.
    pub fn take(&mut self, reply: Reply, now_ms: u64) {
        match reply {
            Reply::Session(session) => {
                self.ahead_ms = session.age_ms.cast_signed() - now_ms.cast_signed();
                self.session = Some(session);
            }
            Reply::Processes(processes) => {
                self.count(&processes, now_ms);
                self.processes = processes;
            }
            Reply::Holds(holds) => self.holds = holds,
            Reply::Calls(calls) => self.calls = calls,
            Reply::Breakpoints(breakpoints) => self.breakpoints = breakpoints,
            Reply::Replay(replay) => self.replay = replay,
            Reply::Watched(watched) => self.watched = watched,
            Reply::Backtrace(backtrace) => self.backtrace = Some(backtrace),
            _ => {}
        }
    }

    fn count(&mut self, processes: &[ProcessView], now_ms: u64) {
        self.rates.0.retain(|name, _| processes.iter().any(|view| view.name == *name));
        for view in processes {
            let count = view.served + view.made;
            let first = Rate { count, at_ms: now_ms, per_second: 0.0 };
            let rate = self.rates.0.entry(view.name.clone()).or_insert(first);
            let length = now_ms.saturating_sub(rate.at_ms);
            if length >= RATE_MS_MIN {
                let new = count.saturating_sub(rate.count) as f64 * 1_000.0 / length as f64;
                let per_second = rate.per_second + (new - rate.per_second) * RATE_WEIGHT;
                *rate = Rate { count, at_ms: now_ms, per_second };
            }
        }
    }

    /// How many calls a process makes and serves in a second.
    pub fn rate(&self, process: &str) -> f64 {
        self.rates.0.get(process).map_or(0.0, |rate| rate.per_second)
    }

    /// What there was no room for, by where and in words: nothing where there was.
    pub fn dropped(&self) -> Vec<(&str, String)> {
        let session = self.session.iter().map(|session| {
            let Dropped { events, missed, values, stops, processes, connections, .. } =
                session.dropped;
            let words = format!(
                "{events} events, {missed} notices for slow listeners, {values} values of held \
                 calls, {stops} held calls, {processes} processes that had left, {connections} \
                 connections"
            );
            ("the session", session.dropped.total(), words)
        });
        let processes = self.processes.iter().map(|view| {
            let DroppedHere { events, names, watched, peers } = view.dropped;
            let words = format!("{events} events, {names} names, {watched} values, {peers} peers");
            (view.name.as_str(), view.dropped.total(), words)
        });
        let some = session.chain(processes).filter(|(_, total, _)| *total > 0);
        some.map(|(place, _, words)| (place, words)).collect()
    }

    /// How late it is by the clock of the session.
    pub fn clock_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add_signed(self.ahead_ms)
    }

    /// How many the user holds.
    pub fn held(&self) -> usize {
        if let Some(session) = self.more_than_told() {
            return usize::try_from(session.held).unwrap_or(usize::MAX);
        }
        self.holds.iter().filter(|hold| hold.reason != HoldReason::Delay).count()
    }

    /// How many wait because of that, or for their turn.
    pub fn waiting(&self) -> usize {
        let turns: usize = self.replay.iter().map(|view| view.progress.waiting.len()).sum();
        if let Some(session) = self.more_than_told() {
            return usize::try_from(session.waiting).unwrap_or(usize::MAX).saturating_add(turns);
        }
        self.holds.len() - self.held() + turns
    }

    /// The session, if more stand still than it tells of.
    fn more_than_told(&self) -> Option<&SessionView> {
        self.session.as_ref().filter(|_| self.holds.len() >= HOLDS_MAX)
    }
}

/// What has been done, in words, if something was asked to be done.
pub fn done(request: &Request, reply: &Reply) -> Option<String> {
    Some(match (request, reply) {
        (Request::Break(_), Reply::Breakpoint(view)) => match view.processes.is_empty() {
            true => format!("breakpoint {}: nobody of that name takes part yet", view.id),
            false => format!("breakpoint {} is set in {}", view.id, view.processes.join(", ")),
        },
        (Request::Change { .. }, Reply::Breakpoint(view)) => {
            format!("breakpoint {} is changed", view.id)
        }
        (Request::Enable { .. }, Reply::Breakpoint(view)) => {
            let how = if view.enabled { "on" } else { "off" };
            format!("breakpoint {} is {how}", view.id)
        }
        (Request::Delete(Some(id)), _) => format!("breakpoint {id} is removed"),
        (Request::Delete(None), Reply::Done(number)) => format!("{number} breakpoints are removed"),
        (Request::Continue(Whom::Hold(id)), _) => format!("hold {id} goes on"),
        (Request::Continue(Whom::Process(name)), Reply::Done(number)) => {
            format!("{number} in {name} go on")
        }
        (Request::Continue(_), Reply::Done(number)) => format!("{number} go on"),
        (Request::Release(id), _) => format!("hold {id} goes on; order is not guaranteed any more"),
        (Request::Pause(Some(name)), _) => format!("{name} is held"),
        (Request::Pause(None), Reply::Done(number)) => format!("all {number} processes are held"),
        (Request::Stop, _) => "the session ends".to_owned(),
        _ => return None,
    })
}
