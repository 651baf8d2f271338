//! The diagram: time from left to right, a lane for each process, messages between them.

use std::collections::BTreeMap;

use ddbx_protocol::control::{HoldReason, HoldView};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::Theme;
use crate::state::help::LEGEND;
use crate::state::lanes::{Lanes, Place, Relation, Relations, Sort};
use crate::state::space_time::{Cell, Columns, Row, rows};
use crate::state::table::Mark;
use crate::state::{Screen, State};
use crate::text::{cut, one_line, padded, seconds, width};

mod arrows;

use arrows::Arrows;

/// How wide names can be.
const NAME_MIN: usize = 13;
const NAME_MAX: usize = 24;

/// How many columns at the end are now, if somebody stands still.
const NOW: usize = 3;

/// All that is needed to draw.
struct Diagram<'a> {
    state: &'a State,
    theme: &'a Theme,
    lanes: &'a Lanes,
    /// Those that there are.
    rows: &'a [Row],
    /// Which row a lane has.
    row_of: Vec<Option<usize>>,
    /// Who stands in a process now, and for how long.
    standing: BTreeMap<&'a str, (Mark, u64)>,
    /// Since when somebody stands in a process.
    stands: BTreeMap<&'a str, i64>,
    /// Which of them is selected.
    selected: usize,
    /// Those that are drawn.
    shown: std::ops::Range<usize>,
    /// How many lines each has.
    high: usize,
    columns: &'a Columns,
    relations: Option<&'a Relations>,
    /// Where the names are, and where time is.
    names: Rect,
    area: Rect,
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, theme: &Theme) {
    let [head, body, foot, axis] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(area);
    let rows = rows(state);
    let log = state.space_time.log(&state.events);
    if rows.is_empty() || log.range().is_empty() {
        let text = match state.pane(Screen::SpaceTime).filter.as_str() {
            "" if state.is_recording() => "  nothing was recorded".to_owned(),
            "" => "  nothing has happened since the screen was opened".to_owned(),
            filter => format!("  /{}: no process has this text; Esc shows all", one_line(filter)),
        };
        frame.render_widget(Paragraph::new(text).style(theme.faint()), head);
        return;
    }
    let longest = rows.iter().map(|row| width(&row.process)).max().unwrap_or_default();
    let wide = longest.clamp(NAME_MIN, NAME_MAX.min(usize::from(area.width) / 4)) + 3;
    let [names, body] =
        Layout::horizontal([Constraint::Length(wide as u16), Constraint::Min(1)]).areas(body);
    let room = usize::from(body.height);
    // Below the last lane nothing is needed.
    let fits = |high: &usize| rows.len() * high < room + high;
    let high = [3, 2].into_iter().find(fits).unwrap_or(1);
    let number = rows.len().min(room);
    let selected = state.space_time.row(&rows).unwrap_or_default();
    let first = selected.saturating_sub(number / 2).min(rows.len() - number);
    let stands = stands(state);
    // Who stands now stands after all that happened.
    let now = if stands.is_empty() { 0 } else { NOW };
    let wide = usize::from(body.width).saturating_sub(now);
    let columns = state.space_time.columns(&state.events, &rows, wide);
    let diagram = Diagram {
        state,
        theme,
        lanes: log.lanes(),
        rows: &rows,
        selected,
        row_of: row_of(&rows, log.lanes().all().len()),
        standing: standing(&state.seen.holds),
        stands,
        shown: first..first + number,
        high,
        columns: &columns,
        relations: state.space_time.relations(&state.events),
        names,
        area: body,
    };
    let undrawn = diagram.draw(frame.buffer_mut());
    let text = cut(&diagram.head(undrawn), usize::from(head.width));
    frame.render_widget(Paragraph::new(text).style(theme.title()), head);
    frame.render_widget(diagram.foot(usize::from(foot.width)), foot);
    let axis = Rect { x: body.x, width: body.width, ..axis };
    diagram.axis(frame.buffer_mut(), axis);
}

impl Diagram<'_> {
    /// Which line a lane is on, if it is shown.
    fn line(&self, row: usize) -> Option<u16> {
        let nth = self.shown.contains(&row).then(|| row - self.shown.start)?;
        Some(self.area.y + (nth * self.high) as u16)
    }

    fn width(&self) -> usize {
        usize::from(self.area.width)
    }

    /// Draws it. Which messages it had no room for, in words.
    fn draw(&self, buffer: &mut Buffer) -> Option<String> {
        for row in self.shown.clone() {
            self.name(buffer, row);
            self.lane(buffer, row);
        }
        let mut arrows = Arrows::new(self.width());
        let mut cells_shown = Vec::new();
        for (row, Row { lane, .. }) in self.rows.iter().enumerate() {
            let Some(lane) = *lane else { continue };
            let cells = self.columns.cells(lane, &self.lanes.all()[lane], self.width());
            arrows.collect(self, row, lane, &cells);
            if self.shown.contains(&row) {
                cells_shown.push((row, lane, cells));
            }
        }
        arrows.draw(self, buffer);
        for (row, lane, cells) in &cells_shown {
            for cell in cells {
                self.mark(buffer, *row, *lane, cell);
            }
        }
        arrows.write_methods(self, buffer);
        match arrows.undrawn {
            _ if arrows.is_crowded => Some("many arrows".to_owned()),
            0 => None,
            1 => Some("1 arrow".to_owned()),
            number => Some(format!("{number} arrows")),
        }
    }

    fn name(&self, buffer: &mut Buffer, row: usize) {
        let Some(y) = self.line(row) else { return };
        let process = &self.rows[row].process;
        let is_selected = row == self.selected;
        let (mark, length) = self.standing.get(process.as_str()).copied().unwrap_or_default();
        let (sign, word) = match mark {
            Mark::Held => ('H', "held"),
            Mark::Waiting => ('w', "waits"),
            _ => (' ', ""),
        };
        let room = usize::from(self.names.width) - 3;
        let here = if is_selected { '▶' } else { ' ' };
        let text = format!("{here}{}{sign} ", padded(process, room));
        let style = self.theme.mark(mark);
        let style = if is_selected { style.patch(self.theme.title()) } else { style };
        buffer.set_string(self.names.x, y, text, style);
        if !word.is_empty() && self.high > 1 && y + 1 < self.area.bottom() {
            let text = cut(&format!("{word} {}", seconds(length)), room);
            buffer.set_string(self.names.x + 1, y + 1, text, style);
        }
    }

    fn put(&self, buffer: &mut Buffer, column: usize, y: u16, sign: char, style: Style) {
        if let Some(cell) = buffer.cell_mut((self.area.x + column as u16, y)) {
            // Nothing is left of what was drawn below.
            cell.reset();
            cell.set_char(sign).set_style(style);
        }
    }

    /// Time in a process, and where it stood still.
    fn lane(&self, buffer: &mut Buffer, row: usize) {
        let (Some(y), Some(nth)) = (self.line(row), self.rows[row].lane) else { return };
        let lane = &self.lanes.all()[nth];
        let width = self.width() as i64;
        let begins = match lane.range().start {
            0 => match (self.column(Place { lane: nth, nth: 0 }), lane.slot(0)) {
                (Some(column), _) => column as i64,
                (None, first) => first.map_or(0, |slot| self.columns.of(slot.at)),
            },
            _ => 0,
        };
        for column in begins.max(0)..width {
            self.put(buffer, column as usize, y, '─', self.theme.faint());
        }
        let Some(from) = self.columns.at(0) else { return };
        let to = self.columns.at(self.width()).unwrap_or(i64::MAX);
        let past = lane.stretches(from, to).map(|stretch| (stretch.from, stretch.to));
        let past = past.map(|(from, to)| self.columns.of(from)..self.columns.of(to).min(width));
        let now = self.stands.get(self.rows[row].process.as_str());
        let now = now.map(|from| self.columns.of(*from).min(width - NOW as i64)..width);
        for column in past.chain(now).flat_map(|stretch| stretch.start.max(0)..stretch.end) {
            self.put(buffer, column as usize, y, '░', self.theme.mark(Mark::Waiting));
        }
    }

    /// How an event stands to the selected one; none if none is selected.
    fn relation(&self, place: Place) -> Option<Relation> {
        self.relations.map(|relations| relations.to(place))
    }

    /// The events of a lane in a column. The past is full, the future hollow, and what is
    /// neither is a dot, so that no colour is needed.
    fn mark(&self, buffer: &mut Buffer, row: usize, lane: usize, cell: &Cell) {
        let Some(y) = self.line(row) else { return };
        let all = &self.lanes.all()[lane];
        let is_single = cell.range.end - cell.range.start == 1;
        let signs = match all.slot(cell.range.start) {
            _ if all.is_late(&cell.range) => ['✕', '×'],
            Some(slot) if is_single => match (slot.sort, self.sender(slot.other)) {
                (Sort::CallArrives | Sort::ReturnArrives, Some(from)) if from < row => ['▼', '▽'],
                (Sort::CallArrives | Sort::ReturnArrives, Some(from)) if from > row => ['▲', '△'],
                (Sort::Departure | Sort::CallArrives | Sort::ReturnArrives, _) => ['●', '○'],
                (Sort::Point, _) => ['◆', '◇'],
                _ => ['•', '◦'],
            },
            _ => ['■', '□'],
        };
        // Of one lane they are in order: first the past, then what is neither, then the future.
        let ends = [cell.range.start, cell.range.end - 1];
        let [first, last] = ends.map(|nth| self.relation(Place { lane, nth }));
        let has_selected = self.relations.is_some_and(|relations| {
            relations.of().lane == lane && cell.range.contains(&relations.of().nth)
        });
        let (sign, style) = match (first, last) {
            _ if has_selected => (signs[0], self.theme.selected().patch(self.theme.title())),
            (Some(Relation::Past), _) => (signs[0], self.theme.title()),
            (_, Some(Relation::Future)) => (signs[1], self.theme.title()),
            (Some(_), _) => ('·', self.theme.faint()),
            (None, _) => (signs[0], self.theme.plain()),
        };
        self.put(buffer, cell.column, y, sign, style);
    }

    /// In which row a message began.
    fn sender(&self, other: Option<Place>) -> Option<usize> {
        self.row_of.get(other?.lane).copied().flatten()
    }

    /// What is shown, and how.
    fn head(&self, undrawn: Option<String>) -> String {
        let all = self.rows.len();
        let mut text = match self.shown.len() {
            1 if all == 1 => " 1 process".to_owned(),
            shown if shown == all => format!(" {all} processes"),
            _ => format!(" {}–{} of {all} processes ↓↑", self.shown.start + 1, self.shown.end),
        };
        let filter = &self.state.pane(Screen::SpaceTime).filter;
        if !filter.is_empty() {
            text.push_str(&format!(" with /{}", one_line(filter)));
        }
        text.push_str(&format!(" │ {}", self.state.space_time.zoom_word()));
        if !self.state.is_recording() {
            let follows = self.state.space_time.follows();
            text.push_str(if follows { " │ follows" } else { " │ stays" });
        }
        if let Some(arrows) = undrawn {
            text.push_str(&format!(" │ {arrows} too close to draw: +"));
        }
        text
    }

    /// What is selected; what the signs mean, if nothing is.
    fn foot(&self, room: usize) -> Paragraph<'_> {
        let space_time = &self.state.space_time;
        let log = space_time.log(&self.state.events);
        let happened = space_time.selected().and_then(|number| log.get(number));
        let (Some(happened), Some(relations)) = (happened, self.relations) else {
            return Paragraph::new(cut(&format!(" {LEGEND}"), room)).style(self.theme.faint());
        };
        let (past, future, beside) = relations.counts(self.lanes);
        let text = format!(" ● {past} before  ○ {future} after  · {beside} beside │ ");
        let event = &happened.event;
        let event = cut(&format!("{} {}", event.id, event.kind), room.saturating_sub(width(&text)));
        Paragraph::new(Line::styled(text + &event, self.theme.title()))
    }

    /// Times, and where the selected event is.
    fn axis(&self, buffer: &mut Buffer, area: Rect) {
        let (every, decimals) = match self.columns {
            Columns::Events { step, .. } => (16usize.next_multiple_of(*step), 6),
            Columns::Times { per, .. } => (
                10,
                match per {
                    100_000 => 4,
                    1_000_000 => 3,
                    10_000_000 => 2,
                    100_000_000 => 1,
                    _ => 0,
                },
            ),
        };
        let is_tick = |column: usize| match self.columns {
            Columns::Events { .. } => column.is_multiple_of(every),
            Columns::Times { first, .. } => (first + column as i64).rem_euclid(every as i64) == 0,
        };
        let selected = self.relations.and_then(|relations| self.column(relations.of()));
        let label = |column: usize, sign: char| {
            let at = self.columns.at(column).filter(|at| *at >= 0)?;
            let text = format!("{sign}{}", time(at, decimals));
            (column + width(&text) <= self.width()).then_some(text)
        };
        let mut write = |column: usize, text: &str, style: Style| {
            buffer.set_string(area.x + column as u16, area.y, text, style);
        };
        // Where the selected one is comes first, and others where they leave it alone.
        let mut taken = usize::MAX..usize::MAX;
        if let Some(column) = selected {
            let text = label(column, '▲').unwrap_or_else(|| "▲".to_owned());
            taken = column.saturating_sub(1)..column + width(&text) + 1;
            write(column, &text, self.theme.title());
        }
        for column in (0..self.width()).filter(|column| is_tick(*column)) {
            let Some(text) = label(column, '╵') else { continue };
            if column >= taken.end || column + width(&text) <= taken.start {
                write(column, &text, self.theme.faint());
            }
        }
    }

    /// In which column an event is.
    fn column(&self, place: Place) -> Option<usize> {
        let column = match self.columns {
            Columns::Events { events, step } => {
                events.iter().position(|event| event.place == place)? * step
            }
            Columns::Times { .. } => {
                usize::try_from(self.columns.of(self.lanes.slot(place)?.at)).ok()?
            }
        };
        (column < self.width()).then_some(column)
    }
}

fn row_of(rows: &[Row], lanes: usize) -> Vec<Option<usize>> {
    let mut row_of = vec![None; lanes];
    for (nth, row) in rows.iter().enumerate() {
        if let Some(lane) = row.lane {
            row_of[lane] = Some(nth);
        }
    }
    row_of
}

/// Who stands in a process: whom the user holds before all, and for how long.
fn standing(holds: &[HoldView]) -> BTreeMap<&str, (Mark, u64)> {
    let mut standing: BTreeMap<&str, (Mark, u64)> = BTreeMap::new();
    for hold in holds {
        let mark = if hold.reason == HoldReason::Delay { Mark::Waiting } else { Mark::Held };
        let known = standing.entry(&hold.process).or_insert((mark, hold.held_ms));
        match (known.0, mark) {
            (Mark::Waiting, Mark::Held) => *known = (mark, hold.held_ms),
            (is, mark) if is == mark => known.1 = known.1.max(hold.held_ms),
            _ => {}
        }
    }
    standing
}

fn stands(state: &State) -> BTreeMap<&str, i64> {
    let mut earliest = BTreeMap::new();
    for stands in state.space_time.stands().values() {
        let from = earliest.entry(stands.process.as_str()).or_insert(stands.from);
        *from = stands.from.min(*from);
    }
    earliest
}

/// A time in seconds.
fn time(nanos: i64, decimals: usize) -> String {
    format!("{:.decimals$}s", nanos as f64 / 1e9)
}
