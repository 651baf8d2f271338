//! What happened where and when: a lane for each process, and calls between them.
//!
//! It either follows what happens, and then only a lane is selected; or it stays, and then
//! an event is. Whoever looks at something needs it to be there: while it stays it shows
//! what was there at that time, whatever happens meanwhile. So the end of what it shows is
//! always the end of a log, and which part is on the screen follows from the selection.

use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};

use ddbx_protocol::HoldId;
use ddbx_protocol::control::{ProcessView, What};

use super::events::EventLog;
use super::lanes::{Lane, Place, Relations};
use super::{Screen, State};

/// How much room things get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zoom {
    /// So many columns for each event.
    Event(usize),
    /// So many nanoseconds for each column.
    Time(i64),
}

/// From the finest on, and how that is said.
const ZOOMS: [(Zoom, &str); 7] = [
    (Zoom::Event(8), "an event: 8 columns"),
    (Zoom::Event(1), "an event: 1 column"),
    (Zoom::Time(100_000), "a column: 100 µs"),
    (Zoom::Time(1_000_000), "a column: 1 ms"),
    (Zoom::Time(10_000_000), "a column: 10 ms"),
    (Zoom::Time(100_000_000), "a column: 100 ms"),
    (Zoom::Time(1_000_000_000), "a column: 1 s"),
];

/// Of how many holds it is known since when they stand.
const STANDS_MAX: usize = 5_000;

/// What of it is shown.
#[derive(Clone, Debug)]
pub struct SpaceTime {
    zoom: usize,
    /// Whose lane is selected.
    process: Option<String>,
    /// Who stands still, and since when.
    stands: BTreeMap<HoldId, Stands>,
    /// What is shown if it does not follow.
    stays: Option<Stay>,
}

/// Somebody stands still, in nanoseconds since the session began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stands {
    /// Where.
    pub process: String,
    /// Since when.
    pub from: i64,
}

#[derive(Clone, Debug, Default)]
struct Stay {
    /// What there was; none if it is all there still.
    events: Option<EventLog>,
    stands: BTreeMap<HoldId, Stands>,
    selected: Option<u64>,
    /// What is before and after the selected one, once somebody wants to know.
    relations: OnceCell<Option<Relations>>,
}

/// A lane that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whose.
    pub process: String,
    /// Which; none if nothing is known to have happened there.
    pub lane: Option<usize>,
}

impl Default for SpaceTime {
    fn default() -> Self {
        Self { zoom: 1, process: None, stands: BTreeMap::new(), stays: None }
    }
}

impl SpaceTime {
    /// Of a recording: nothing happens any more.
    pub(super) fn of_recording() -> Self {
        Self { stays: Some(Stay::default()), ..Self::default() }
    }

    /// Whether the latest is shown.
    pub fn follows(&self) -> bool {
        self.stays.is_none()
    }

    /// The number of the event that is selected.
    pub fn selected(&self) -> Option<u64> {
        self.stays.as_ref()?.selected
    }

    /// What is shown, if these are all events.
    pub fn log<'a>(&'a self, events: &'a EventLog) -> &'a EventLog {
        self.stays.as_ref().and_then(|stay| stay.events.as_ref()).unwrap_or(events)
    }

    /// Who stands still at the end of what is shown.
    pub fn stands(&self) -> &BTreeMap<HoldId, Stands> {
        self.stays.as_ref().map_or(&self.stands, |stay| &stay.stands)
    }

    /// What is before and after the selected event. It is computed once.
    pub fn relations(&self, events: &EventLog) -> Option<&Relations> {
        let log = self.log(events);
        let stay = self.stays.as_ref()?;
        let compute = || Some(log.lanes().relations(log.get(stay.selected?)?.place));
        stay.relations.get_or_init(compute).as_ref()
    }

    /// Somebody stands still, or goes on.
    pub(super) fn notice(&mut self, at_ms: u64, what: &What) {
        match what {
            What::Stands(hold) => {
                if self.stands.len() >= STANDS_MAX {
                    self.stands.pop_first();
                }
                let from_ms = at_ms.saturating_sub(hold.held_ms);
                let from = i64::try_from(from_ms).unwrap_or(i64::MAX).saturating_mul(1_000_000);
                let process = hold.process.clone();
                self.stands.insert(hold.id, Stands { process, from });
            }
            What::GoesOn { hold, .. } => _ = self.stands.remove(hold),
            What::Left(process) => self.stands.retain(|_, stands| stands.process != *process),
            _ => {}
        }
    }

    /// Selects another event of the lane, so many further.
    pub(super) fn select(&mut self, events: &EventLog, rows: &[Row], by: isize) {
        if self.follows() {
            self.stay(events, rows);
            return;
        }
        let log = self.log(events);
        let Some(Place { lane, nth }) = self.place(events) else { return };
        let lane = &log.lanes().all()[lane];
        let range = lane.range();
        let nth = nth.saturating_add_signed(by as i64).clamp(range.start, range.end - 1);
        if let Some(slot) = lane.slot(nth) {
            self.select_event(events, slot.number);
        }
    }

    /// Selects a lane so many further down, and there the event that is nearest in time; or
    /// the first, or the last, of all.
    pub(super) fn step(&mut self, events: &EventLog, rows: &[Row], by: isize, is_over: bool) {
        match by {
            isize::MAX if !is_over => self.stays = None,
            isize::MIN | isize::MAX => {
                if self.follows() {
                    self.stay(events, rows);
                }
                let log = self.log(events);
                let lanes = rows.iter().filter_map(|row| log.lanes().all().get(row.lane?));
                let ends = lanes.filter_map(|lane| {
                    let range = lane.range();
                    let nth = if by < 0 { range.start } else { range.end.checked_sub(1)? };
                    Some(lane.slot(nth)?.number)
                });
                let number = if by < 0 { ends.min() } else { ends.max() };
                if let Some(number) = number {
                    self.select_event(events, number);
                }
            }
            by => self.step_lanes(events, rows, by),
        }
    }

    fn step_lanes(&mut self, events: &EventLog, rows: &[Row], by: isize) {
        let Some(last) = rows.len().checked_sub(1) else { return };
        let at = self.row(rows).unwrap_or_default();
        let to = at.saturating_add_signed(by).min(last);
        if self.follows() {
            self.process = Some(rows[to].process.clone());
            return;
        }
        let log = self.log(events);
        let now = self.selected().and_then(|number| log.get(number)).map(|of| of.at);
        let nearest = |row: &Row| {
            let lane = &log.lanes().all()[row.lane?];
            Some(lane.slot(lane.nearest(now?)?)?.number)
        };
        // Lanes in which nothing happened are passed over.
        let further = match by > 0 {
            true => rows[to.max(at + 1).min(rows.len())..].iter().find_map(nearest),
            false => rows[..(to + 1).min(at)].iter().rev().find_map(nearest),
        };
        if let Some(number) = further {
            self.select_event(events, number);
        }
    }

    /// Selects an event, and its lane.
    pub(super) fn select_event(&mut self, events: &EventLog, number: u64) {
        let log = self.log(events);
        let Some(happened) = log.get(number) else { return };
        self.process = Some(happened.event.id.process.to_string());
        if let Some(stay) = &mut self.stays {
            stay.selected = Some(number);
            stay.relations = OnceCell::new();
        }
    }

    /// Stays, with the last event of the selected lane selected, or the last of all.
    fn stay(&mut self, events: &EventLog, rows: &[Row]) {
        let lanes = events.lanes().all();
        let last = |lane: &Lane| lane.last().map(|slot| slot.number);
        let of_lane = self.process.as_ref().and_then(|_| rows.get(self.row(rows)?)?.lane);
        let of_lane = of_lane.and_then(|lane| last(&lanes[lane]));
        let of_all = rows.iter().filter_map(|row| last(&lanes[row.lane?])).max();
        let stands = self.stands.clone();
        self.stays = Some(Stay { events: events.frozen(), stands, ..Stay::default() });
        if let Some(number) = of_lane.or(of_all) {
            self.select_event(events, number);
        }
    }

    /// Shows less time, or more.
    pub(super) fn zoom(&mut self, by: isize) {
        self.zoom = self.zoom.saturating_add_signed(-by).min(ZOOMS.len() - 1);
    }

    /// How much room things get, in words.
    pub fn zoom_word(&self) -> &'static str {
        ZOOMS[self.zoom].1
    }

    /// Follows what happens, or stays.
    pub(super) fn toggle_follow(&mut self, events: &EventLog, rows: &[Row]) {
        match self.follows() {
            true => self.stay(events, rows),
            false => self.stays = None,
        }
    }

    /// Which of these lanes is selected.
    pub fn row(&self, rows: &[Row]) -> Option<usize> {
        let named = |process: &String| rows.iter().position(|row| row.process == *process);
        let selected = self.process.as_ref().and_then(named);
        selected.or_else(|| (!rows.is_empty()).then_some(0))
    }

    fn place(&self, events: &EventLog) -> Option<Place> {
        Some(self.log(events).get(self.selected()?)?.place)
    }

    /// Which part is shown, if there is room for so many columns.
    pub fn columns(&self, events: &EventLog, rows: &[Row], width: usize) -> Columns {
        let log = self.log(events);
        let selected = self.selected().and_then(|number| log.get(number).map(|of| (number, of.at)));
        match ZOOMS[self.zoom].0 {
            Zoom::Time(per) => {
                let latest = log.lanes().latest().unwrap_or_default().div_euclid(per);
                let earliest = log.lanes().earliest().unwrap_or_default().div_euclid(per);
                let after = selected.map_or(0, |(_, at)| latest - at.div_euclid(per));
                let hidden = i64::try_from(hidden(after.max(0) as u64, width)).unwrap_or(0);
                let first = latest.saturating_sub(hidden).saturating_sub(width as i64 - 1);
                Columns::Times { first: first.max(earliest), per }
            }
            Zoom::Event(step) => {
                let selected = selected.map(|(number, _)| number);
                let events = by_event(log, rows, (width / step).max(1), selected);
                Columns::Events { events, step }
            }
        }
    }
}

/// How many columns at the end are not shown, if so many are after the selected one. They
/// go by half a screen, so that the picture stands still while one looks around.
fn hidden(after: u64, width: usize) -> u64 {
    let width = width as u64;
    let half = (width / 2).max(1);
    let shown = width.saturating_sub(1 + width / 8);
    after.saturating_sub(shown).div_ceil(half) * half
}

/// A column for each event of these lanes, by time.
fn by_event(log: &EventLog, rows: &[Row], width: usize, selected: Option<u64>) -> Vec<EventColumn> {
    let lanes = log.lanes().all();
    let mut is_shown = vec![false; lanes.len()];
    rows.iter().filter_map(|row| row.lane).for_each(|lane| is_shown[lane] = true);
    let shown = || lanes.iter().zip(&is_shown).filter(|(_, shown)| **shown).map(|(lane, _)| lane);
    let is_all = is_shown.iter().all(|is_shown| *is_shown);
    let from = |number: u64| -> u64 {
        if is_all {
            return log.range().end - number;
        }
        shown().map(|lane| lane.range().end - lane.range().start - lane.before(number)).sum()
    };
    let hidden = selected.map_or(0, |number| hidden(from(number + 1), width));
    // The smallest number at which no more than the hidden ones begin.
    let (mut low, mut high) = (log.range().start, log.range().end);
    while low < high {
        let middle = low + (high - low) / 2;
        match from(middle) <= hidden {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    let events = log.within(0..low).rev().filter(|(_, happened)| is_shown[happened.place.lane]);
    let column = |(number, happened): (u64, &super::events::Happened)| EventColumn {
        at: happened.at,
        number,
        place: happened.place,
    };
    let mut columns: Vec<EventColumn> = events.take(width).map(column).collect();
    columns.sort_by_key(|column| (column.at, column.number));
    columns
}

/// Which part is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// As many for each event.
    Events {
        /// By time.
        events: Vec<EventColumn>,
        /// How many.
        step: usize,
    },
    /// As much time in each.
    Times {
        /// The time of the first column, in columns since the beginning.
        first: i64,
        /// How much, in nanoseconds.
        per: i64,
    },
}

/// An event that has a column of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventColumn {
    /// When it was.
    pub at: i64,
    /// Its number.
    pub number: u64,
    /// Where it is.
    pub place: Place,
}

/// The events of a lane in a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Which column.
    pub column: usize,
    /// Their places in the lane.
    pub range: std::ops::Range<u64>,
}

impl Columns {
    /// In which column a time is. Less than 0 if it is before the first.
    pub fn of(&self, at: i64) -> i64 {
        match self {
            Self::Events { events, step } => match events.first() {
                Some(first) if at < first.at => -1,
                _ => (events.partition_point(|event| event.at < at) * step) as i64,
            },
            Self::Times { first, per } => at.div_euclid(*per).saturating_sub(*first),
        }
    }

    /// When a column begins.
    pub fn at(&self, column: usize) -> Option<i64> {
        match self {
            Self::Events { events, step } => events.get(column / step).map(|event| event.at),
            Self::Times { first, per } => first.saturating_add(column as i64).checked_mul(*per),
        }
    }

    /// What of a lane is where, in the first so many columns.
    pub fn cells(&self, number: usize, lane: &Lane, width: usize) -> Vec<Cell> {
        match self {
            Self::Events { events, step } => {
                let events = events.iter().enumerate().filter(|(_, of)| of.place.lane == number);
                let cell = |(nth, of): (usize, &EventColumn)| Cell {
                    column: nth * step,
                    range: of.place.nth..of.place.nth + 1,
                };
                events.map(cell).collect()
            }
            Self::Times { first, per } => {
                let mut cells = Vec::new();
                let mut nth = lane.from(first.saturating_mul(*per));
                while let Some(slot) = lane.slot(nth) {
                    let column = self.of(slot.at);
                    if column >= width as i64 {
                        break;
                    }
                    let end = (first + column + 1).saturating_mul(*per);
                    let to = lane.from_near(nth, end);
                    cells.push(Cell { column: column as usize, range: nth..to });
                    nth = to;
                }
                cells
            }
        }
    }
}

/// The lanes that there are: of all in which something happened, and of all that take part.
pub fn rows(state: &State) -> Vec<Row> {
    let lanes = state.space_time.log(&state.events).lanes();
    let views = &state.seen.processes;
    let happened = lanes.all().iter().enumerate().filter(|(_, lane)| {
        !lane.range().is_empty() || views.iter().any(|view| view.name == lane.process.as_str())
    });
    let mut rows: Vec<Row> = happened
        .map(|(nth, lane)| Row { process: lane.process.to_string(), lane: Some(nth) })
        .collect();
    let quiet = views.iter().filter(|view| !rows.iter().any(|row| row.process == view.name));
    let quiet: Vec<Row> =
        quiet.map(|view| Row { process: view.name.clone(), lane: None }).collect();
    rows.extend(quiet);
    // What was recorded has an order of its own, whatever is known of calls at its time.
    if !state.is_recording() {
        let depths = depths(views);
        rows.sort_by_key(|row| depths.get(row.process.as_str()).copied().unwrap_or(usize::MAX));
    }
    let filter = state.pane(Screen::SpaceTime).filter.to_lowercase();
    rows.retain(|row| row.process.to_lowercase().contains(&filter));
    rows
}

/// How far processes are from those whom nobody calls. Callers come before those they call,
/// and whoever has to do with nobody comes last.
fn depths(views: &[ProcessView]) -> BTreeMap<&str, usize> {
    let is_called = |name: &str| views.iter().any(|view| view.calls.iter().any(|to| to == name));
    let begins = |view: &&ProcessView| !view.calls.is_empty() && !is_called(&view.name);
    let mut depths = BTreeMap::new();
    let mut found: VecDeque<(&str, usize)> =
        views.iter().filter(begins).map(|view| (view.name.as_str(), 0)).collect();
    while let Some((name, depth)) = found.pop_front() {
        if depths.contains_key(name) {
            continue;
        }
        depths.insert(name, depth);
        let calls = views.iter().filter(|view| view.name == name).flat_map(|view| &view.calls);
        found.extend(calls.map(|to| (to.as_str(), depth + 1)));
    }
    depths
}
