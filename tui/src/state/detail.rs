//! More about something that is selected.

use ddbx_protocol::control::{HoldView, ProcessView};
use ddbx_protocol::{BreakpointId, HoldId};

use super::table::Mark;
use super::{Screen, State, breakpoints, calls, holds, processes};
use crate::text::{micros_of, seconds, signed_seconds};

/// What lies over the screen.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// What it is about.
    pub about: About,
    /// From which line on.
    pub scroll: usize,
}

/// What a detail is about.
#[derive(Clone, Debug, PartialEq)]
pub enum About {
    /// A process.
    Process(String),
    /// Who stands still.
    Hold(HoldId),
    /// Why it does.
    Why(HoldId),
    /// Who waits for its turn in a replay.
    Turn(String),
    /// A call in flight.
    Call(String),
    /// A breakpoint.
    Breakpoint(BreakpointId),
    /// An event, by its number here.
    Event(u64),
    /// A line of the log.
    Line(u64),
    /// The values that processes watch.
    Watched,
}

impl About {
    /// What a row of a screen is about.
    pub fn of(screen: Screen, key: &str) -> Option<Self> {
        Some(match screen {
            Screen::Processes => Self::Process(key.to_owned()),
            Screen::Holds => match key.parse() {
                Ok(id) => Self::Hold(HoldId(id)),
                Err(_) => Self::Turn(key.to_owned()),
            },
            Screen::Calls => Self::Call(key.to_owned()),
            Screen::Breakpoints => Self::Breakpoint(BreakpointId(key.parse().ok()?)),
            Screen::SpaceTime | Screen::Events => Self::Event(key.parse().ok()?),
            Screen::Log => Self::Line(key.parse().ok()?),
        })
    }

    /// In a few words.
    pub fn title(&self) -> String {
        match self {
            Self::Process(name) => name.clone(),
            Self::Hold(id) => format!("hold {id}"),
            Self::Why(id) => format!("why hold {id} stands still"),
            Self::Turn(_) => "why it waits for its turn".to_owned(),
            Self::Call(_) => "call".to_owned(),
            Self::Breakpoint(id) => format!("breakpoint {id}"),
            Self::Event(_) => "event".to_owned(),
            Self::Line(_) => "log".to_owned(),
            Self::Watched => "watched values".to_owned(),
        }
    }
}

/// A line of it.
#[derive(Clone, Debug, PartialEq)]
pub struct DetailLine {
    /// In words.
    pub text: String,
    /// What kind of line it is.
    pub mark: Mark,
}

impl<T: Into<String>> From<T> for DetailLine {
    fn from(text: T) -> Self {
        Self { text: text.into(), mark: Mark::Plain }
    }
}

fn title(text: &str) -> DetailLine {
    DetailLine { text: text.to_owned(), mark: Mark::Title }
}

/// A name, and what there is to say.
fn fact(name: &str, value: impl std::fmt::Display) -> DetailLine {
    format!("{name:<12} {value}").into()
}

/// What there is to say now.
pub fn lines(state: &State, about: &About) -> Vec<DetailLine> {
    let gone = || vec!["it is not there any more".into()];
    match about {
        About::Process(name) => {
            let view = state.seen.processes.iter().find(|view| view.name == *name);
            view.map_or_else(gone, |view| of_process(state, view))
        }
        About::Hold(id) => state.hold(*id).map_or_else(gone, |hold| of_hold(state, hold)),
        About::Why(id) => state.hold(*id).map_or_else(gone, |hold| {
            holds::explain(state, hold).into_iter().map(DetailLine::from).collect()
        }),
        About::Turn(key) => holds::explain_turn(state, key)
            .map_or_else(gone, |said| said.into_iter().map(DetailLine::from).collect()),
        About::Call(key) => calls::of_key(state, key).map_or_else(gone, |call| {
            vec![
                fact("method", &call.method),
                fact("in", &call.process),
                fact("control", &call.control),
                fact("depth", format!("{} processes wait for it", call.depth)),
                fact("age", seconds(call.age_ms)),
                fact("deadline in", call.remaining_ms.map(seconds).unwrap_or_default()),
                fact("stands", call.hold.map(|id| format!("hold {id}")).unwrap_or_default()),
            ]
        }),
        About::Breakpoint(id) => of_breakpoint(state, *id).unwrap_or_else(gone),
        About::Event(number) => of_event(state, *number).unwrap_or_else(gone),
        About::Line(number) => {
            let line = state.log.line(*number).map(|line| vec![line.into()]);
            line.unwrap_or_else(gone)
        }
        About::Watched => of_watched(state),
    }
}

fn of_process(state: &State, view: &ProcessView) -> Vec<DetailLine> {
    let mut lines = vec![
        fact("state", processes::word(view)),
        fact("pid", view.pid),
        fact("clock", format!("{} (virtual)", signed_seconds(view.clock_ms))),
        fact("delay", seconds(view.delay_ms)),
        fact(
            "calls",
            format!("{} in flight, {} served, {} made", view.in_flight, view.served, view.made),
        ),
        fact("stand still", format!("{} held, {} waiting", view.held, view.waiting)),
        fact("from outside", view.from_outside),
        fact("calls whom", view.calls.join(", ")),
    ];
    if let (Some(written), Some(durable)) = (view.written, view.durable) {
        let missing = view.missing.unwrap_or_default();
        lines.push(fact(
            "recorded",
            format!("up to event {written}, {durable} of it on the disk; {missing} missing"),
        ));
    }
    if let Some((_, what)) = state.seen.dropped().iter().find(|(place, _)| *place == view.name) {
        lines.push(fact("no room for", what));
    }
    if let Some(replay) = state.seen.replay.iter().find(|replay| replay.process == view.name) {
        let progress = &replay.progress;
        lines.push(fact("replay", format!("{} of {} events", progress.done, progress.of)));
        lines.extend(
            progress
                .next
                .iter()
                .map(|next| fact("next", format!("{} {}", next.number.0, next.kind))),
        );
    }
    lines.push(fact("methods", view.methods.join(", ")));
    lines.push(fact("points", view.points.join(", ")));
    lines
}

fn of_hold(state: &State, hold: &HoldView) -> Vec<DetailLine> {
    let mut lines: Vec<DetailLine> =
        holds::explain(state, hold).into_iter().map(DetailLine::from).collect();
    lines.push("".into());
    lines.extend(hold.control.iter().map(|control| fact("control", control)));
    lines.extend(hold.args.iter().map(|args| fact("arguments", args)));
    lines.extend(hold.result.iter().map(|result| fact("result", result)));
    if let Some(backtrace) = state.seen.backtrace.as_ref().filter(|of| of.hold.id == hold.id) {
        lines.extend(["".into(), title("How it came here, the innermost first")]);
        for (nth, frame) in backtrace.frames.iter().enumerate() {
            let method = frame.method.as_ref().map_or("where it began", |method| method.as_str());
            let age = frame.age_ms.map(|age| format!(", for {}", seconds(age))).unwrap_or_default();
            let left = frame.remaining_ms.map(|left| format!(", deadline in {}", seconds(left)));
            let left = left.unwrap_or_default();
            lines.push(format!("#{nth} {}  {method}{age}{left}", frame.process).into());
        }
    }
    let mut watched =
        state.seen.watched.iter().filter(|watch| watch.process == hold.process).peekable();
    if watched.peek().is_some() {
        lines.extend(["".into(), title("Watched values of its process")]);
        lines.extend(watched.map(|watch| fact(&watch.name, &watch.value)));
    }
    lines
}

fn of_watched(state: &State) -> Vec<DetailLine> {
    if state.seen.watched.is_empty() {
        return vec![
            "nothing is watched: programs show values with ddbx::watch!(name = value)".into(),
        ];
    }
    let mut lines = Vec::new();
    let mut process = "";
    for watch in &state.seen.watched {
        if watch.process != process {
            process = &watch.process;
            lines.push(title(process));
        }
        lines.push(fact(&watch.name, &watch.value));
    }
    lines
}

fn of_breakpoint(state: &State, id: BreakpointId) -> Option<Vec<DetailLine>> {
    let view = state.seen.breakpoints.iter().find(|view| view.id == id)?;
    let wanted = &view.wanted;
    let mut lines = vec![
        fact("where", &wanted.spec),
        fact("state", breakpoints::word(view)),
        fact("stops", breakpoints::scope(wanted.scope)),
        fact("if", wanted.condition.as_deref().unwrap_or("always")),
        fact("once", if wanted.once { "yes" } else { "no" }),
        fact("ignore", format!("the first {}", wanted.ignore)),
        fact("met", format!("{} times, and stopped {}", view.met, view.hits)),
        fact("set in", view.processes.join(", ")),
    ];
    if let Some(length) = wanted.hold_for {
        lines.push(fact("lets go", format!("after {}", humantime::format_duration(length))));
    }
    if let Some(error) = &view.last_error {
        let text = format!("its condition could not be evaluated {} times: {error}", view.errors);
        lines.push(DetailLine { text, mark: Mark::Wrong });
    }
    Some(lines)
}

fn of_event(state: &State, number: u64) -> Option<Vec<DetailLine>> {
    let happened = state.log_of(number).get(number)?;
    let event = &happened.event;
    let clock = happened.at.saturating_sub(event.delay.as_nanos().try_into().unwrap_or(i64::MAX));
    let mut lines = vec![
        fact("event", &event.id),
        fact("what", &event.kind),
        fact("at", micros_of(happened.at)),
        fact("clock", format!("{} (virtual)", micros_of(clock))),
    ];
    lines.extend(event.kind.control().map(|control| fact("control", control)));
    lines.extend(event.kind.sent_as().map(|id| fact("sent as", id)));
    if happened.stood > 0 {
        lines.push(fact("stood still", format!("for {} before it", micros_of(happened.stood))));
    }
    Some(lines)
}
