//! What people see of a session, and what they can ask of it at once.

use std::time::Duration;

use ddbx_protocol::control::{
    BreakpointView, Dropped, HOLDS_MAX, HoldReason, HoldView, ProcessState, ProcessView,
    ReplayView, Reply, Request, SessionView, WatchView, What, Whom,
};
use ddbx_protocol::{
    BreakpointId, DroppedHere, HoldId, Pattern, ProcessIndex, ProcessName, Progress, RealTime,
    StopId, StopReason,
};
use serde_json::Value;

use super::holds::Hold;
use super::{Driver, Member, Refused};
use crate::logic::Command;

/// For how many it is worked out whom they wait for.
const EXPLAINED_MAX: usize = 1_000;

/// How much text the values of holds, or the names of processes, may have in one answer: it
/// must fit into a message.
const TEXT_BYTES_MAX: usize = 6 << 20;

impl Driver {
    pub(super) fn answer(&mut self, request: Request) -> Reply {
        match request {
            Request::Session => Reply::Session(self.view_session()),
            Request::Processes => Reply::Processes(self.view_processes()),
            Request::Break(_) | Request::Change { .. } => {
                Reply::Refused("breakpoints are checked first".to_owned())
            }
            Request::Enable { breakpoint, enabled } => match self.enable(breakpoint, enabled) {
                Some(view) => Reply::Breakpoint(view),
                None => Reply::Refused(Refused::Unknown(breakpoint).to_string()),
            },
            Request::Breakpoints => {
                let ids = self.asked.ids().into_iter();
                let mut views: Vec<_> = ids.map(|id| self.view_breakpoint(id)).collect();
                let mut bytes = 0;
                for view in &mut views {
                    bytes += view.processes.iter().map(String::len).sum::<usize>();
                    if bytes > TEXT_BYTES_MAX {
                        view.processes.clear();
                    }
                }
                Reply::Breakpoints(views)
            }
            Request::Delete(Some(id)) if !self.delete(id) => {
                Reply::Refused(Refused::Unknown(id).to_string())
            }
            Request::Delete(Some(_)) => Reply::Done(1),
            Request::Delete(None) => {
                let ids = self.asked.ids();
                Reply::Done(ids.into_iter().filter(|id| self.delete(*id)).count() as u64)
            }
            Request::Holds => Reply::Holds(self.view_holds()),
            Request::Continue(whom) => self.go_on(whom),
            Request::Release(hold) => match self.holds.stop(hold) {
                Some(stop) => {
                    self.log.tell(self.now(), What::Released(hold));
                    self.central.handle_user(Command::Force(stop));
                    Reply::Done(1)
                }
                None => no_hold(hold),
            },
            Request::Pause(name) => self.pause(name.as_deref(), true),
            Request::Watched => Reply::Watched(self.view_watched()),
            Request::Replay => Reply::Replay(self.view_replay()),
            Request::Backtrace(hold) => match self.holds.stop(hold) {
                None => no_hold(hold),
                Some(stop) => self.view_hold(stop, true).map_or_else(|| no_hold(hold), Reply::Hit),
            },
            Request::Wait { breakpoint, .. } => match self.asked.get(breakpoint) {
                None => Reply::Refused(Refused::Unknown(breakpoint).to_string()),
                Some(_) => {
                    let at = StopReason::Breakpoint(breakpoint);
                    let stops = self.holds.iter().find(|(_, hold)| hold.reason == at);
                    let stop = stops.map(|(stop, _)| stop);
                    let view = stop.and_then(|stop| self.view_hold(stop, true));
                    view.map_or(Reply::TimedOut, Reply::Hit)
                }
            },
            Request::Calls => Reply::Refused("calls are asked of the processes".to_owned()),
            Request::Events { .. } => Reply::Refused("events come one after the other".to_owned()),
            Request::Stop => Reply::Refused("this session cannot be ended from outside".to_owned()),
        }
    }

    fn go_on(&mut self, whom: Whom) -> Reply {
        match whom {
            Whom::All => Reply::Done(self.continue_everybody()),
            Whom::Hold(id) => match self.holds.stop(id) {
                None => no_hold(id),
                Some(stop) if self.is_held(stop) => {
                    self.central.handle_user(Command::Continue(stop));
                    Reply::Done(1)
                }
                Some(_) => Reply::Refused(format!(
                    "hold {id} waits by itself and goes on when its turn comes; `ddbx bt {id}` \
                     says for whom, `ddbx release {id}` lets it go on anyway"
                )),
            },
            Whom::TheOnly => {
                // Whoever is halted with its process goes on with what halted it.
                let at = |hold: &Hold| matches!(hold.reason, StopReason::Breakpoint(_));
                let held = self.holds.iter().filter(|(_, hold)| at(hold)).map(|(stop, _)| stop);
                let paused = self.members.keys().filter(|p| self.central.is_paused(**p)).copied();
                match (&*held.collect::<Vec<_>>(), &*paused.collect::<Vec<_>>()) {
                    ([], []) => {
                        return Reply::Refused(
                            "nobody is held: set a breakpoint with `ddbx break`, or hold a \
                             process with `ddbx pause`"
                                .to_owned(),
                        );
                    }
                    ([stop], []) => self.central.handle_user(Command::Continue(*stop)),
                    ([], [process]) => self.set_paused(*process, false),
                    (held, paused) => {
                        return Reply::Refused(format!(
                            "{} held and {} paused: say which (`ddbx holds` and `ddbx ps` list \
                             them), or --all",
                            held.len(),
                            paused.len()
                        ));
                    }
                }
                Reply::Done(1)
            }
            Whom::Process(name) => {
                let of = self.named(&name);
                if of.is_empty() {
                    return self.no_process(&name);
                }
                let mut done = 0;
                for process in of {
                    if self.central.is_paused(process) {
                        self.set_paused(process, false);
                        done += 1;
                    }
                    let held = self
                        .holds
                        .iter()
                        .filter(|(stop, hold)| stop.process == process && hold.reason.is_users());
                    for stop in held.map(|(stop, _)| stop).collect::<Vec<_>>() {
                        self.central.handle_user(Command::Continue(stop));
                        done += 1;
                    }
                }
                Reply::Done(done)
            }
        }
    }

    pub(super) fn pause(&mut self, name: Option<&str>, pause: bool) -> Reply {
        let all = || self.members.keys().copied().collect();
        let concerned: Vec<ProcessIndex> = name.map_or_else(all, |name| self.named(name));
        if let (true, Some(name)) = (concerned.is_empty(), name) {
            return self.no_process(name);
        }
        for process in &concerned {
            self.set_paused(*process, pause);
        }
        Reply::Done(concerned.len() as u64)
    }

    pub(super) fn set_paused(&mut self, process: ProcessIndex, paused: bool) {
        if self.central.is_paused(process) != paused {
            let what = What::Paused { process: self.name(process), paused };
            self.log.tell(self.now(), what);
        }
        self.central.handle_user(Command::Pause(process, paused));
    }

    fn is_held(&self, stop: StopId) -> bool {
        self.holds.get(stop).is_some_and(|hold| hold.reason.is_users())
    }

    /// The members that are meant by a name, as in breakpoints.
    fn named(&self, name: &str) -> Vec<ProcessIndex> {
        let pattern = Pattern::from(name);
        let meant = self.members.iter().filter(|(_, m)| pattern.means(m.name.as_str()));
        meant.map(|(process, _)| *process).collect()
    }

    fn no_process(&self, name: &str) -> Reply {
        let mut names: Vec<&str> = self.members.values().map(|m| m.name.as_str()).collect();
        names.sort_unstable();
        Reply::Refused(match names.is_empty() {
            true => format!(
                "no process {name:?} takes part, nor any other: start your services with \
                 DDBX_SESSION set to this session"
            ),
            false => format!("no process {name:?} takes part; there is {}", names.join(", ")),
        })
    }

    fn view_session(&self) -> SessionView {
        let held = self.holds.iter().filter(|(_, hold)| hold.reason.is_users()).count() as u64;
        SessionView {
            age_ms: millis(self.origin.elapsed()),
            processes: self.members.len() as u64,
            held,
            waiting: self.holds.iter().count() as u64 - held,
            order_guaranteed: self.central.is_order_guaranteed(),
            messages_sent: self.messages_sent,
            left: self.left,
            dropped: self.dropped(),
        }
    }

    fn dropped(&self) -> Dropped {
        let [events, missed, connections] = self.backlog.dropped();
        Dropped {
            events,
            missed,
            notices: self.log.forgotten(),
            values: self.holds.values_dropped(),
            stops: self.stops_dropped,
            processes: self.central.forgotten(),
            connections,
        }
    }

    fn view_processes(&self) -> Vec<ProcessView> {
        let now = self.now();
        let present = self.members.iter().map(|(process, m)| self.view_process(now, *process, m));
        let departed = self.departed.iter().map(|(name, pid)| gone(name, *pid));
        let mut views: Vec<ProcessView> = present.chain(departed).collect();
        views.sort_by(|a, b| a.name.cmp(&b.name));
        let mut bytes = 0;
        for view in &mut views {
            let names = view.methods.iter().chain(&view.points).chain(&view.calls);
            bytes += names.map(String::len).sum::<usize>();
            if bytes > TEXT_BYTES_MAX {
                (view.methods, view.points, view.calls) = Default::default();
            }
        }
        views
    }

    fn view_process(&self, now: RealTime, process: ProcessIndex, member: &Member) -> ProcessView {
        let delay = self.central.delay(now, process);
        let paused = self.central.is_paused(process);
        let (held, waiting) = self.holds.count_in(process);
        let mut calls: Vec<String> = self.central.callees(process).map(|p| self.name(p)).collect();
        calls.sort_unstable();
        calls.dedup();
        ProcessView {
            name: member.name.to_string(),
            pid: member.pid,
            state: match (held > 0 || paused, waiting > 0) {
                (true, _) => ProcessState::Held,
                (false, true) => ProcessState::Waiting,
                (false, false) => ProcessState::Running,
            },
            paused,
            clock_ms: (now - delay).as_nanos() / 1_000_000,
            delay_ms: millis(delay.length()),
            in_flight: member.status.in_flight,
            written: member.status.recorded.map(|recorded| recorded.written.0),
            durable: member.status.recorded.map(|recorded| recorded.durable.0),
            missing: member.status.recorded.map(|recorded| recorded.missing),
            served: member.status.served,
            made: member.status.made,
            held,
            waiting,
            from_outside: member.status.from_outside,
            calls,
            methods: member.names.methods.iter().map(ToString::to_string).collect(),
            points: member.names.points.iter().map(ToString::to_string).collect(),
            dropped: member.status.dropped,
        }
    }

    pub(super) fn view_breakpoint(&self, id: BreakpointId) -> BreakpointView {
        let wish = self.asked.get(id);
        let (met, errors, last_error) = wish.map(|wish| wish.counts()).unwrap_or_default();
        let fits = |m: &&Member| wish.is_some_and(|w| w.is_planted_in(m.name.as_str()));
        let mut processes: Vec<String> =
            self.members.values().filter(fits).map(|m| m.name.to_string()).collect();
        processes.sort_unstable();
        BreakpointView {
            id,
            wanted: wish.map(|wish| wish.wanted().clone()).unwrap_or_default(),
            enabled: wish.is_some_and(|wish| wish.enabled),
            processes,
            hits: wish.map_or(0, |wish| wish.hits),
            met,
            spent: wish.is_none_or(|wish| wish.spent),
            errors,
            last_error,
        }
    }

    fn view_holds(&mut self) -> Vec<HoldView> {
        let stops = self.holds.told(HOLDS_MAX).into_iter().enumerate();
        let mut bytes = 0;
        let mut views = Vec::new();
        for (nth, stop) in stops {
            let Some(mut view) = self.view_hold(stop, nth < EXPLAINED_MAX) else { continue };
            let text = |value: &Option<Value>| value.as_ref().map_or(0, |v| v.to_string().len());
            bytes += text(&view.args) + text(&view.result);
            if bytes > TEXT_BYTES_MAX {
                (view.args, view.result) = (None, None);
            }
            views.push(view);
        }
        views
    }

    pub(super) fn view_hold(&mut self, stop: StopId, explain: bool) -> Option<HoldView> {
        let chain = if explain { self.central.why(stop) } else { Vec::new() };
        let at_least = self.central.at_least(self.now(), &chain);
        let because_of = chain.iter().skip(1).filter_map(|because| self.holds.get(because.stop));
        let because_of = because_of.map(|hold| hold.id).collect();
        let hold = self.holds.get(stop)?;
        let standing = hold.standing.as_ref();
        let read = |text: &Option<String>| {
            let text = text.as_deref()?;
            Some(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())))
        };
        let (reason, breakpoint) = match hold.reason {
            StopReason::Breakpoint(id) => (HoldReason::Breakpoint, Some(id)),
            StopReason::Process => (HoldReason::Halt, None),
            StopReason::Delay | StopReason::Inside => (HoldReason::Delay, None),
        };
        Some(HoldView {
            id: hold.id,
            process: self.name(stop.process),
            at: standing.map_or_else(|| "event".to_owned(), |standing| standing.gate.to_string()),
            control: standing.map(|standing| standing.control.clone()),
            reason,
            breakpoint,
            because_of,
            held_ms: millis(self.now().since(hold.since)),
            at_least_ms: at_least.map(millis),
            args: standing.and_then(|standing| read(&standing.args)),
            result: standing.and_then(|standing| read(&standing.result)),
        })
    }

    fn view_replay(&self) -> Vec<ReplayView> {
        let is_there = |name: &ProcessName, start: u32| {
            self.members.values().any(|member| member.name == *name && member.start == start)
        };
        let replays = self.replays.iter();
        let view = |((name, start), progress): (&(ProcessName, u32), &Progress)| ReplayView {
            process: name.to_string(),
            start: *start,
            is_there: is_there(name, *start),
            progress: progress.clone(),
        };
        replays.map(view).collect()
    }

    fn view_watched(&self) -> Vec<WatchView> {
        let (mut views, mut bytes) = (Vec::new(), 0);
        for member in self.members.values() {
            for (name, value) in &member.status.watched {
                bytes += name.len() + value.len();
                if bytes > TEXT_BYTES_MAX {
                    break;
                }
                let read = serde_json::from_str(value);
                let value = read.unwrap_or_else(|_| Value::String(value.clone()));
                let process = member.name.to_string();
                views.push(WatchView { process, name: name.clone(), value });
            }
        }
        views.sort_by(|a, b| (&a.process, &a.name).cmp(&(&b.process, &b.name)));
        views
    }
}

fn gone(name: &str, pid: u32) -> ProcessView {
    ProcessView {
        name: name.to_owned(),
        pid,
        state: ProcessState::Gone,
        paused: false,
        clock_ms: 0,
        delay_ms: 0,
        in_flight: 0,
        written: None,
        durable: None,
        missing: None,
        served: 0,
        made: 0,
        held: 0,
        waiting: 0,
        from_outside: 0,
        calls: Vec::new(),
        methods: Vec::new(),
        points: Vec::new(),
        dropped: DroppedHere::default(),
    }
}

fn no_hold(id: HoldId) -> Reply {
    Reply::Refused(format!("nobody stands as hold {id} now; `ddbx holds` lists who does"))
}

pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
