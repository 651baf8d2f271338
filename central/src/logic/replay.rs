//! Whether a replay goes well, from what the processes say of it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use ddbx_protocol::control::ReplayView;
use ddbx_protocol::replay::{AtTurn, Next, Progress};
use ddbx_protocol::{ControlId, EventId, EventKind, EventNumber, ProcessName};

/// How long a control may take beyond what it took when it was recorded, when it already
/// stands before another event.
const HESITATION: Duration = Duration::from_secs(2);

/// One run of a process in a recording: its name, and the how manieth of that name.
pub type Run = (ProcessName, u32);

/// Follows a replay.
#[derive(Debug)]
pub struct Judge {
    runs: Vec<Run>,
    patience: Duration,
}

/// How it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not all has happened again yet.
    GoesOn,
    /// All has.
    Over,
    /// The program does something else than it did.
    Diverged(Box<Divergence>),
    /// Nothing happens any more.
    Stalled(Vec<Missing>),
}

/// The program does something else than it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// In which process.
    pub process: String,
    /// Where in its log.
    pub number: EventNumber,
    /// What was recorded; none if the process ended there.
    pub expected: Option<EventKind>,
    /// What happens instead.
    pub actual: EventKind,
    /// The last events that both have in common.
    pub recent: Vec<(EventNumber, EventKind)>,
}

/// What a process waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Which process.
    pub process: String,
    /// What must come next.
    pub next: Awaited,
    /// Of an arrival: the departure, if that has not happened again either.
    pub waits_for: Option<EventId>,
    /// Who else stands there.
    pub waiting: Vec<AtTurn>,
    /// Whether the process has ended.
    pub is_gone: bool,
}

/// What must come next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The process itself.
    Process,
    /// An event of it.
    Event(EventNumber, EventKind),
    /// Its end: all else has happened again.
    End,
}

impl Judge {
    /// Follows the replay of these processes.
    pub fn new(runs: Vec<Run>, patience: Duration) -> Self {
        Self { runs, patience }
    }

    /// How it stands, after nobody was held for so long.
    pub fn look(&self, views: &[ReplayView], nobody_held_for: Duration) -> Verdict {
        let differs = views.iter().find_map(|view| Some((view, view.progress.differs.as_ref()?)));
        if let Some((view, differs)) = differs {
            let (number, expected) = (differs.number, Some(differs.expected.clone()));
            return Verdict::Diverged(
                divergence(view, number, expected, differs.actual.clone()).into(),
            );
        }
        let of = |run: &Run| {
            views.iter().find(|view| view.process == run.0.as_str() && view.start == run.1)
        };
        let is_over = |run: &Run| {
            of(run).is_some_and(|view| view.progress.next.is_none() && !must_still_end(view))
        };
        if self.runs.iter().all(is_over) {
            return Verdict::Over;
        }
        let idle = |progress: &Progress| progress.idle.min(nobody_held_for);
        for view in views {
            let Progress { next, waiting, lasted, recent, .. } = &view.progress;
            let (expected, actual, hesitation) = match next {
                Some(next) => {
                    let expected = (next.number, Some(next.kind.clone()));
                    let instead = instead(next, waiting);
                    // One that was recorded may just wait for its turn beside the next one.
                    let hesitation = match instead {
                        Some(AtTurn { number: Some(_), .. }) => self.patience.max(HESITATION),
                        _ => HESITATION,
                    };
                    (expected, instead.map(|at| at.kind.clone()), hesitation + 2 * next.took)
                }
                // Nobody knows how long after the last event it ended.
                None if must_still_end(view) => {
                    let last = recent.last().map_or(0, |(number, _)| number.0);
                    let own = waiting.iter().find(|at| at.kind.own_frame().is_some());
                    let actual = own.map(|at| at.kind.clone());
                    ((EventNumber(last + 1), None), actual, self.patience + *lasted)
                }
                None => continue,
            };
            if idle(&view.progress) > hesitation
                && let Some(actual) = actual
            {
                return Verdict::Diverged(divergence(view, expected.0, expected.1, actual).into());
            }
        }
        let moving = |view: &ReplayView| {
            let took = match &view.progress.next {
                Some(next) => 2 * next.took,
                None if must_still_end(view) => view.progress.lasted,
                None => Duration::ZERO,
            };
            idle(&view.progress) <= self.patience + took
        };
        if views.iter().filter(|view| view.is_there).any(moving) || nobody_held_for <= self.patience
        {
            return Verdict::GoesOn;
        }
        Verdict::Stalled(self.missing(views))
    }

    /// What the unfinished processes wait for; first those that wait for nobody else.
    pub fn missing(&self, views: &[ReplayView]) -> Vec<Missing> {
        let mut all: Vec<Missing> = Vec::new();
        let next_of: BTreeMap<&str, EventNumber> = views
            .iter()
            .filter_map(|view| Some((view.process.as_str(), view.progress.next.as_ref()?.number)))
            .collect();
        for (name, start) in &self.runs {
            let process = name.to_string();
            let found = views.iter().find(|view| view.process == process && view.start == *start);
            let Some(view) = found else {
                let (next, waits_for) = (Awaited::Process, None);
                all.push(Missing { process, next, waits_for, waiting: Vec::new(), is_gone: false });
                continue;
            };
            let waiting = view.progress.waiting.clone();
            let Some(next) = &view.progress.next else {
                if must_still_end(view) {
                    let (next, waits_for) = (Awaited::End, None);
                    all.push(Missing { process, next, waits_for, waiting, is_gone: false });
                }
                continue;
            };
            let is_ahead = |sent: &&EventId| {
                next_of.get(sent.process.as_str()).is_some_and(|next| *next <= sent.number)
            };
            all.push(Missing {
                process,
                next: Awaited::Event(next.number, next.kind.clone()),
                waits_for: next.kind.sent_as().filter(is_ahead).cloned(),
                waiting,
                is_gone: !view.is_there,
            });
        }
        all.sort_by_key(|missing| missing.waits_for.is_some());
        all
    }
}

/// Whether all has happened again and only the end of the process is missing.
fn must_still_end(view: &ReplayView) -> bool {
    let Progress { next, must_end, .. } = &view.progress;
    next.is_none() && *must_end && view.is_there
}

/// What the control of the next event does instead, if that is for the control to do
/// and it stands before another one.
fn instead<'a>(next: &Next, waiting: &'a [AtTurn]) -> Option<&'a AtTurn> {
    let frame = next.kind.own_frame()?;
    let of_frame = |at: &&AtTurn| at.kind.own_frame().as_ref() == Some(&frame);
    // One that was not recorded at all says more.
    waiting.iter().filter(of_frame).min_by_key(|at| at.number.is_some())
}

fn divergence(
    view: &ReplayView,
    number: EventNumber,
    expected: Option<EventKind>,
    actual: EventKind,
) -> Divergence {
    let (process, recent) = (view.process.clone(), view.progress.recent.clone());
    Divergence { process, number, expected, actual, recent }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GoesOn => f.write_str("the replay goes on"),
            Self::Over => f.write_str("all has happened again"),
            Self::Diverged(divergence) => divergence.fmt(f),
            Self::Stalled(missing) => {
                f.write_str("the replay cannot go on:")?;
                missing.iter().try_for_each(|missing| write!(f, "\n{missing}"))
            }
        }
    }
}

impl Divergence {
    /// Whose doing it is.
    pub fn control(&self) -> Option<&ControlId> {
        self.expected.as_ref().unwrap_or(&self.actual).control()
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, number, expected, actual, recent } = self;
        writeln!(f, "{process} does not do what was recorded, at {process}:{}", number.0)?;
        if let Some(control) = self.control() {
            writeln!(f, "  control   {control}")?;
        }
        match expected {
            Some(expected) => writeln!(f, "  expected  {expected}")?,
            None => writeln!(f, "  expected  the end of {process}")?,
        }
        write!(f, "  actual    {actual}")?;
        if let (Some(expected), Some(actual)) =
            (expected.as_ref().and_then(EventKind::sent_as), actual.sent_as())
        {
            write!(f, "\n  from      {actual}, and not {expected}")?;
        }
        write!(f, "\n  the last events that both have in common:")?;
        for (number, kind) in recent {
            write!(f, "\n    {process}:{}  {kind}", number.0)?;
        }
        if recent.is_empty() {
            write!(f, "\n    none")?;
        }
        Ok(())
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, next, waits_for, waiting, is_gone } = self;
        let waits = if *is_gone { "has ended before" } else { "waits for" };
        match next {
            Awaited::Process => return write!(f, "{process} has not come"),
            Awaited::Event(number, kind) => {
                write!(f, "{process} {waits} {process}:{}  {kind}", number.0)?;
            }
            Awaited::End => write!(f, "{process} has done all that it did, and does not end")?,
        }
        if let Some(departure) = waits_for {
            write!(f, "\n  which is sent by {departure}, and that has not happened")?;
        }
        for AtTurn { kind, number } in waiting {
            match number {
                Some(number) => {
                    write!(f, "\n  waits for its turn: {process}:{}  {kind}", number.0)?
                }
                None => write!(f, "\n  not recorded: {kind}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ddbx_protocol::replay::Differs;
    use ddbx_protocol::{CallId, CallPath, ControlId, MethodName, PointLabel};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);
    const LONG: Duration = Duration::from_secs(60);

    fn point(control: &str, label: &str) -> EventKind {
        EventKind::Point {
            control: ControlId::new(control).unwrap(),
            call: None,
            label: PointLabel::new(label).unwrap(),
        }
    }

    fn arrives(from: &str, number: u64) -> EventKind {
        let control = ControlId::new("p/main").unwrap();
        let process = ProcessName::new(from).unwrap();
        EventKind::CallArrived {
            call: CallId { control, path: CallPath::root(1) },
            method: MethodName::new("S.m").unwrap(),
            sent_as: Some(EventId { process, number: EventNumber(number) }),
        }
    }

    fn view(process: &str, next: Option<EventKind>, idle: Duration) -> ReplayView {
        let number = EventNumber(5);
        let next = next.map(|kind| Next { number, kind, took: Duration::ZERO });
        let progress = Progress {
            done: 4,
            of: 9,
            next,
            must_end: false,
            lasted: Duration::ZERO,
            idle,
            waiting: Vec::new(),
            recent: Vec::new(),
            differs: None,
        };
        ReplayView { process: process.to_owned(), start: 1, is_there: true, progress }
    }

    fn judge(names: &[&str]) -> Judge {
        let runs = names.iter().map(|name| (ProcessName::new(name).unwrap(), 1));
        Judge::new(runs.collect(), PATIENCE)
    }

    #[test]
    fn it_is_over_when_all_have_come_to_their_end() {
        let judge = judge(&["p", "q"]);
        let [p, q] = ["p", "q"].map(|name| view(name, None, LONG));
        assert_eq!(judge.look(&[p.clone(), q], LONG), Verdict::Over);
        assert_eq!(judge.look(std::slice::from_ref(&p), PATIENCE), Verdict::GoesOn);
        let Verdict::Stalled(missing) = judge.look(&[p], LONG) else { panic!("q has not come") };
        assert_eq!(missing[0].to_string(), "q has not come");
    }

    #[test]
    fn whoever_stands_before_another_event_diverges_after_a_while() {
        let judge = judge(&["p"]);
        let mut view = view("p", Some(point("p/main", "a")), Duration::from_secs(3));
        assert_eq!(judge.look(&[view.clone()], LONG), Verdict::GoesOn);
        let at = |kind| vec![AtTurn { kind, number: None }];
        // Another control, or what no control does by itself, says nothing.
        let control = ControlId::new("p/main").unwrap();
        let timer = EventKind::Fired { control, call: None, timer: 1 };
        for says_nothing in [point("p/other", "b"), timer] {
            view.progress.waiting = at(says_nothing);
            assert_eq!(judge.look(&[view.clone()], LONG), Verdict::GoesOn);
        }
        view.progress.waiting = at(point("p/main", "b"));
        let Verdict::Diverged(divergence) = judge.look(&[view.clone()], LONG) else {
            panic!("it does something else");
        };
        assert_eq!(divergence.actual, point("p/main", "b"));
        assert!(divergence.to_string().contains("at p:5"), "{divergence}");
        // While somebody is held, nobody is slow.
        assert_eq!(judge.look(&[view.clone()], Duration::from_secs(1)), Verdict::GoesOn);
        // Nor is it before it takes longer than it took.
        view.progress.next.as_mut().unwrap().took = Duration::from_secs(2);
        assert_eq!(judge.look(&[view], LONG), Verdict::GoesOn);
    }

    #[test]
    fn an_event_that_differs_is_told_at_once() {
        let mut view = view("p", Some(point("p/main", "a")), Duration::ZERO);
        let (expected, actual) = (arrives("q", 7), arrives("q", 8));
        view.progress.differs = Some(Differs { number: EventNumber(4), expected, actual });
        let Verdict::Diverged(divergence) = judge(&["p"]).look(&[view], LONG) else {
            panic!("it differs");
        };
        assert!(divergence.to_string().contains("from      q:8, and not q:7"), "{divergence}");
    }

    #[test]
    fn a_process_that_ended_must_end() {
        let judge = judge(&["p"]);
        let mut view = view("p", None, LONG);
        view.progress.must_end = true;
        let Verdict::Stalled(missing) = judge.look(&[view.clone()], LONG) else {
            panic!("it is still there");
        };
        assert_eq!(missing[0].to_string(), "p has done all that it did, and does not end");
        view.progress.waiting = vec![AtTurn { kind: point("p/main", "more"), number: None }];
        let Verdict::Diverged(divergence) = judge.look(&[view.clone()], LONG) else {
            panic!("it goes on");
        };
        assert!(divergence.to_string().contains("expected  the end of p"), "{divergence}");
        view.is_there = false;
        assert_eq!(judge.look(&[view], LONG), Verdict::Over);
    }

    #[test]
    fn a_stall_names_first_who_waits_for_nobody_else() {
        let judge = judge(&["p", "q"]);
        let mut gone = view("q", Some(point("q/main", "a")), LONG);
        gone.is_there = false;
        let waits = view("p", Some(arrives("q", 6)), LONG);
        let Verdict::Stalled(missing) = judge.look(&[waits, gone], LONG) else {
            panic!("nothing moves");
        };
        let text: Vec<String> = missing.iter().map(ToString::to_string).collect();
        assert_eq!(text[0], "q has ended before q:5  point a  q/main");
        assert!(
            text[1].starts_with("p waits for p:5  receives S.m  p/main!1\n  which is sent by q:6")
        );
    }
}
