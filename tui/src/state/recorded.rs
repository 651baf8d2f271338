//! What a recording shows at a time: the same as of a session, worked out from the events
//! up to there.
//!
//! It walks on from where it was; to go back it begins at the last of the states that were
//! kept on the first way through.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ddbx_protocol::control::{
    CALLS_MAX, CallView, HoldReason, HoldView, NAMES_MAX, ProcessState, ProcessView, What,
};
use ddbx_protocol::{CallId, DroppedHere, End, EventKind, HoldId, MethodName, PointLabel};

use super::events::EventLog;
use super::lanes::{Lane, Sort};
use super::log::Log;
use super::session::Seen;
use super::space_time::SpaceTime;
use super::{Mode, Screen, State};

/// So many events are walked at the most to go back.
const KEPT_EVERY: u64 = 4_096;

/// Who stood for less is not told in the log.
const TOLD_MIN: i64 = 1_000_000;

/// How many lines of the log are of interest.
const LINES_MAX: usize = 2_000;

/// Of how much time before a rate is.
const RATE_NANOS: i64 = 1_000_000_000;

/// Something that is remarkable about a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where it belongs, in nanoseconds since the recording began.
    pub at: i64,
    /// In words.
    pub text: String,
}

/// A recording, at a time.
#[derive(Debug)]
pub struct Recorded {
    now: Walk,
    kept: Vec<Walk>,
    /// Who stood still, by the event before which that was.
    holds: Vec<Hold>,
    /// How long at the most.
    longest: i64,
    /// What the log says, and how many events have been by then.
    lines: Vec<(u64, Line)>,
    /// How many of the lines are shown.
    told: usize,
    pids: BTreeMap<String, u32>,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    number: u64,
    from: i64,
    to: i64,
}

#[derive(Clone, Debug)]
enum Line {
    Joined(usize),
    Stands(usize),
    GoesOn(usize),
    Note(Note),
}

/// How it is after so many events.
#[derive(Clone, Debug, Default)]
struct Walk {
    done: u64,
    lanes: Vec<Counts>,
    calls: HashMap<CallId, InFlight>,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    delay: u64,
    served: u64,
    made: u64,
    from_outside: u64,
    /// The lanes that it calls.
    calls: BTreeSet<usize>,
    methods: BTreeSet<MethodName>,
    points: BTreeSet<PointLabel>,
}

#[derive(Clone, Debug)]
struct InFlight {
    lane: usize,
    method: MethodName,
    at: i64,
}

impl Walk {
    fn step(&mut self, events: &EventLog) -> bool {
        let Some(happened) = events.get(self.done) else { return false };
        self.done += 1;
        let (event, lane) = (&happened.event, happened.place.lane);
        let counts = &mut self.lanes[lane];
        counts.delay = counts.delay.max(event.delay.as_nanos());
        match &event.kind {
            EventKind::CallSent { .. } => counts.made += 1,
            EventKind::CallArrived { call, method, .. } => {
                counts.served += 1;
                counts.methods.insert(method.clone());
                let slot = events.lanes().slot(happened.place);
                match slot.and_then(|slot| slot.other) {
                    Some(caller) => _ = self.lanes[caller.lane].calls.insert(lane),
                    None => counts.from_outside += 1,
                }
                let (method, at) = (method.clone(), happened.at);
                self.calls.insert(call.clone(), InFlight { lane, method, at });
            }
            EventKind::ReturnSent { call }
            | EventKind::Cancelled { call, end: End::Callee }
            | EventKind::DeadlineExpired { call, end: End::Callee } => {
                self.calls.remove(call);
            }
            EventKind::Point { label, .. } => _ = counts.points.insert(label.clone()),
            _ => {}
        }
        true
    }
}

impl Recorded {
    /// Of these events, which are in the order of their times; at its end.
    pub fn new(events: &EventLog, notes: Vec<Note>, pids: BTreeMap<String, u32>) -> Self {
        let lanes = vec![Counts::default(); events.lanes().all().len()];
        let mut now = Walk { lanes, ..Walk::default() };
        let mut kept = vec![now.clone()];
        while now.step(events) {
            if now.done.is_multiple_of(KEPT_EVERY) {
                kept.push(now.clone());
            }
        }
        let stood = events.within(events.range()).filter(|(_, happened)| happened.stood > 0);
        let hold = |(number, of): (u64, &super::events::Happened)| Hold {
            number,
            from: of.at - of.stood,
            to: of.at,
        };
        let holds: Vec<Hold> = stood.map(hold).collect();
        let longest = holds.iter().map(|hold| hold.to - hold.from).max().unwrap_or_default();
        let lines = lines(events, &holds, notes);
        Self { now, kept, holds, longest, lines, told: usize::MAX, pids }
    }

    /// How many events have been.
    pub fn done(&self) -> u64 {
        self.now.done
    }

    /// Goes to where so many events have been.
    pub(super) fn seek(&mut self, events: &EventLog, done: u64) {
        let kept = &self.kept[((done / KEPT_EVERY) as usize).min(self.kept.len() - 1)];
        if done < self.now.done || kept.done > self.now.done {
            self.now = kept.clone();
        }
        while self.now.done < done && self.now.step(events) {}
    }

    /// How late it is.
    pub fn at(&self, events: &EventLog) -> i64 {
        let last = self.now.done.checked_sub(1).and_then(|number| events.get(number));
        last.map(|happened| happened.at).unwrap_or_default()
    }

    /// Says how it is now as a session would.
    pub(super) fn show(&mut self, events: &EventLog, seen: &mut Seen, log: &mut Log) {
        let now = self.at(events);
        seen.holds = self.standing(events, now);
        seen.calls = self.calls(events, now, &seen.holds);
        seen.processes = self.processes(events, now, &seen.holds);
        for view in &seen.processes {
            seen.rates.set(&view.name, self.rate(events, now, &view.name));
        }
        let told = self.lines.partition_point(|(done, _)| *done <= self.now.done);
        if told != self.told {
            self.told = told;
            *log = Log::default();
            for (_, line) in &self.lines[told.saturating_sub(LINES_MAX)..told] {
                self.tell(events, line, log);
            }
        }
    }

    /// Who stands still: what comes next of them has a greater delay.
    fn standing(&self, events: &EventLog, now: i64) -> Vec<HoldView> {
        let first = self.holds.partition_point(|hold| hold.number < self.now.done);
        let latest = now.saturating_add(self.longest);
        let may_be = self.holds.iter().enumerate().skip(first);
        let may_be = may_be.take_while(|(_, hold)| hold.to <= latest);
        let standing = may_be.filter(|(_, hold)| hold.from <= now).take(CALLS_MAX);
        standing.filter_map(|(nth, _)| self.hold(events, nth, now)).collect()
    }

    fn hold(&self, events: &EventLog, nth: usize, now: i64) -> Option<HoldView> {
        let hold = self.holds[nth];
        let event = &events.get(hold.number)?.event;
        let what = event.kind.to_string();
        Some(HoldView {
            id: HoldId(nth as u64 + 1),
            process: event.id.process.to_string(),
            at: what.split("  ").next().unwrap_or_default().to_owned(),
            control: event.kind.control().cloned(),
            reason: HoldReason::Delay,
            breakpoint: None,
            because_of: Vec::new(),
            held_ms: millis(now - hold.from),
            at_least_ms: Some(millis(hold.to - now)),
            args: None,
            result: None,
        })
    }

    fn calls(&self, events: &EventLog, now: i64, holds: &[HoldView]) -> Vec<CallView> {
        let mut calls: Vec<(&CallId, &InFlight)> = self.now.calls.iter().collect();
        calls.sort_by_key(|(call, in_flight)| (in_flight.at, *call));
        calls.truncate(CALLS_MAX);
        let of = |(call, in_flight): (&CallId, &InFlight)| {
            let process = events.lanes().all()[in_flight.lane].process.as_str();
            let stands = |hold: &&HoldView| {
                hold.process == process && hold.control.as_ref() == Some(&call.control)
            };
            CallView {
                process: process.to_owned(),
                method: in_flight.method.clone(),
                control: call.control.clone(),
                depth: u32::try_from(call.path.numbers().len()).unwrap_or(u32::MAX),
                age_ms: millis(now - in_flight.at),
                remaining_ms: None,
                hold: holds.iter().find(stands).map(|hold| hold.id),
            }
        };
        calls.into_iter().map(of).collect()
    }

    fn processes(&self, events: &EventLog, now: i64, holds: &[HoldView]) -> Vec<ProcessView> {
        let lanes = events.lanes().all();
        let mut in_flight = vec![0; lanes.len()];
        self.now.calls.values().for_each(|call| in_flight[call.lane] += 1);
        let mut waiting: BTreeMap<&str, u64> = BTreeMap::new();
        holds.iter().for_each(|hold| *waiting.entry(&hold.process).or_default() += 1);
        let named = |lane: &usize| lanes[*lane].process.to_string();
        let view = |(nth, counts): (usize, &Counts)| {
            let lane = &lanes[nth];
            let name = lane.process.to_string();
            let begun = lane.before(self.now.done);
            let is_over = begun == lane.range().end;
            let waiting = waiting.get(name.as_str()).copied().unwrap_or_default();
            let delay = i64::try_from(counts.delay).unwrap_or(i64::MAX);
            (begun > 0 || waiting > 0).then(|| ProcessView {
                pid: self.pids.get(&name).copied().unwrap_or_default(),
                state: match waiting {
                    1.. => ProcessState::Waiting,
                    0 if is_over => ProcessState::Gone,
                    0 => ProcessState::Running,
                },
                paused: false,
                clock_ms: (now - delay).div_euclid(1_000_000),
                delay_ms: millis(delay),
                in_flight: in_flight[nth],
                served: counts.served,
                made: counts.made,
                held: 0,
                waiting,
                from_outside: counts.from_outside,
                calls: counts.calls.iter().map(named).collect(),
                methods: counts.methods.iter().take(NAMES_MAX).map(ToString::to_string).collect(),
                points: counts.points.iter().take(NAMES_MAX).map(ToString::to_string).collect(),
                written: None,
                durable: None,
                missing: None,
                dropped: DroppedHere::default(),
                name,
            })
        };
        let mut views: Vec<ProcessView> =
            self.now.lanes.iter().enumerate().filter_map(view).collect();
        views.sort_by(|a, b| a.name.cmp(&b.name));
        views
    }

    /// How many calls a process made and served in the second before.
    fn rate(&self, events: &EventLog, now: i64, process: &str) -> f64 {
        let lanes = events.lanes().all();
        let Some(lane) = lanes.iter().find(|lane| lane.process.as_str() == process) else {
            return 0.0;
        };
        let to = lane.range().start + lane.before(self.now.done);
        let slots = lane.slots(lane.from(now.saturating_sub(RATE_NANOS))..to);
        let ends = slots.filter(|slot| matches!(slot.sort, Sort::Departure | Sort::CallArrives));
        let is_call = |number: u64| {
            events.get(number).is_some_and(|happened| happened.event.kind.method().is_some())
        };
        ends.filter(|slot| is_call(slot.number)).count() as f64
    }

    fn tell(&self, events: &EventLog, line: &Line, log: &mut Log) {
        let process = |lane: usize| events.lanes().all()[lane].process.to_string();
        match line {
            Line::Joined(lane) => {
                let first = events.lanes().all()[*lane].slot(0);
                let first = first.and_then(|slot| events.get(slot.number));
                let at = first.map_or(0, |first| first.at - first.stood);
                log.notice(millis(at), &What::Joined(process(*lane)));
            }
            Line::Stands(nth) => {
                let from = self.holds[*nth].from;
                if let Some(hold) = self.hold(events, *nth, from) {
                    let (HoldView { process, at, id, .. }, from) = (hold, millis(from));
                    log.recorded(from, &format!("{process} stands before it {at} (hold {id})"));
                }
            }
            Line::GoesOn(nth) => {
                let Hold { number, from, to } = self.holds[*nth];
                let Some(happened) = events.get(number) else { return };
                let (hold, process) = (HoldId(*nth as u64 + 1), process(happened.place.lane));
                let held_ms = millis(to - from);
                log.notice(millis(to), &What::GoesOn { hold, process, held_ms });
            }
            Line::Note(note) => log.debugger(millis(note.at), &note.text),
        }
    }
}

/// Of recordings.
impl State {
    /// Of a recording: its events in the order of their times, what is remarkable about it,
    /// and the numbers that its processes had. It shows its end.
    pub fn of_recording(
        name: String,
        events: EventLog,
        notes: Vec<Note>,
        pids: BTreeMap<String, u32>,
    ) -> Self {
        let recorded = Recorded::new(&events, notes, pids);
        let space_time = SpaceTime::of_recording();
        let mut state = Self {
            events,
            space_time,
            recorded: Some(recorded),
            ..Self::new(name, Mode::Recording, true)
        };
        state.seek_to(u64::MAX);
        state
    }

    /// How many events of a recording have been, of how many, and how late it is.
    pub fn cursor(&self) -> Option<(u64, u64, i64)> {
        let recorded = self.recorded.as_ref()?;
        Some((recorded.done(), self.events.range().end, recorded.at(&self.events)))
    }

    pub(super) fn seek(&mut self, by: isize) {
        if let Some((done, ..)) = self.cursor() {
            self.seek_to(done.saturating_add_signed(by as i64));
        }
    }

    /// In a recording the selected event is also its time.
    pub(super) fn seek_to_selected(&mut self) {
        if let Some(number) = self.space_time.selected() {
            self.seek_to(number + 1);
        }
    }

    /// Moves the time of a recording to where so many events have been.
    pub(super) fn seek_to(&mut self, done: u64) {
        let Some(recorded) = &mut self.recorded else { return };
        let all = self.events.range().end;
        let done = done.clamp(1.min(all), all);
        recorded.seek(&self.events, done);
        recorded.show(&self.events, &mut self.seen, &mut self.log);
        self.events_pane.show_until(done);
        if let Some(last) = done.checked_sub(1) {
            self.panes[Screen::Events as usize].select(last.to_string());
            self.space_time.select_event(&self.events, last);
        }
    }
}

/// All that the log says, in order.
fn lines(events: &EventLog, holds: &[Hold], notes: Vec<Note>) -> Vec<(u64, Line)> {
    // The events are in the order of their times.
    let since = |at: i64| {
        let (mut low, mut high) = (events.range().start, events.range().end);
        while low < high {
            let middle = low + (high - low) / 2;
            match events.get(middle).is_some_and(|happened| happened.at < at) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low + 1
    };
    let lanes = events.lanes().all().iter().enumerate();
    let joined = |(nth, lane): (usize, &Lane)| {
        let first = events.get(lane.slot(0)?.number)?;
        Some((since(first.at - first.stood), Line::Joined(nth)))
    };
    let mut lines: Vec<(u64, Line)> = lanes.filter_map(joined).collect();
    for (nth, hold) in holds.iter().enumerate() {
        if hold.to - hold.from >= TOLD_MIN {
            lines.push((since(hold.from), Line::Stands(nth)));
            lines.push((hold.number + 1, Line::GoesOn(nth)));
        }
    }
    let end = events.range().end;
    lines.extend(notes.into_iter().map(|note| (since(note.at).min(end), Line::Note(note))));
    lines.sort_by_key(|(done, _)| *done);
    lines
}

fn millis(nanos: i64) -> u64 {
    u64::try_from(nanos / 1_000_000).unwrap_or_default()
}
