//! Messages between lanes.

use ratatui::buffer::Buffer;
use ratatui::style::Style;

use super::Diagram;
use crate::state::lanes::{Place, Relation, Sort};
use crate::state::space_time::Cell;
use crate::text::{cut, width};

/// If more events than this are in one column of a lane, their messages are not drawn.
const CROWD: u64 = 6;

/// Of so many messages in a column few could be drawn anyway; those that matter to the
/// selected event are looked at longer.
const COLUMN_MAX: u32 = 16;
const COLUMN_MAX_RELATED: u32 = 64;

/// A method is written only if there is room for so much of it.
const METHOD_MIN: usize = 5;

/// All messages that arrive on the screen.
#[derive(Default)]
pub(super) struct Arrows {
    wanted: Vec<Arrow>,
    drawn: Vec<Arrow>,
    /// How many there are in each column.
    numbers: Vec<u32>,
    /// For how many there was no room.
    pub(super) undrawn: usize,
    /// Whether there are more that were not even counted.
    pub(super) is_crowded: bool,
}

#[derive(Clone, Copy)]
struct Arrow {
    column: usize,
    /// From which row to which.
    from: usize,
    to: usize,
    sort: Sort,
    /// What arrives.
    number: u64,
    /// Whether it is on the way to, or from, the selected event; none if none is selected.
    is_related: Option<bool>,
}

impl Arrow {
    fn rows(&self) -> (usize, usize) {
        (self.from.min(self.to), self.from.max(self.to))
    }
}

impl Arrows {
    pub(super) fn new(columns: usize) -> Self {
        Self { numbers: vec![0; columns], ..Self::default() }
    }

    /// What arrives in a lane.
    pub(super) fn collect(&mut self, of: &Diagram<'_>, row: usize, lane: usize, cells: &[Cell]) {
        let all = &of.lanes.all()[lane];
        for cell in cells {
            let number = cell.range.end - cell.range.start;
            if number > CROWD {
                self.is_crowded = true;
                continue;
            }
            for nth in cell.range.clone() {
                let Some(slot) = all.slot(nth).filter(|slot| slot.sort.is_arrival()) else {
                    continue;
                };
                let Some(from) = of.sender(slot.other).filter(|from| *from != row) else {
                    continue;
                };
                if from.max(row) < of.shown.start || from.min(row) >= of.shown.end {
                    continue;
                }
                let counts =
                    |place: Place| of.relation(place).map(|relation| relation != Relation::Beside);
                let ends = [Some(Place { lane, nth }), slot.other].map(|end| end.and_then(counts));
                let is_related = ends[0].map(|end| end && ends[1] == Some(true));
                let most = if is_related == Some(true) { COLUMN_MAX_RELATED } else { COLUMN_MAX };
                if self.numbers[cell.column] >= most {
                    self.is_crowded = true;
                    continue;
                }
                self.numbers[cell.column] += 1;
                let (column, sort, number) = (cell.column, slot.sort, slot.number);
                self.wanted.push(Arrow { column, from, to: row, sort, number, is_related });
            }
        }
    }

    /// Draws those for which there is room, and before others those that matter to the
    /// selected event. Two on one another could not be told apart.
    pub(super) fn draw(&mut self, of: &Diagram<'_>, buffer: &mut Buffer) {
        self.wanted.sort_by_key(|arrow| {
            let (top, bottom) = arrow.rows();
            (arrow.column, arrow.is_related == Some(false), bottom - top, arrow.number)
        });
        let mut column: Vec<Arrow> = Vec::new();
        for arrow in std::mem::take(&mut self.wanted) {
            let (top, bottom) = arrow.rows();
            column.retain(|other| other.column == arrow.column);
            let is_over = |other: &Arrow| other.rows().0 < bottom && top < other.rows().1;
            if column.iter().any(is_over) {
                self.undrawn += 1;
                continue;
            }
            column.push(arrow);
            draw(of, buffer, arrow);
            self.drawn.push(arrow);
        }
    }

    /// Writes what is called beside the arrow, where nothing else is.
    pub(super) fn write_methods(&self, of: &Diagram<'_>, buffer: &mut Buffer) {
        if of.high < 2 {
            return;
        }
        let log = of.state.space_time.log(&of.state.events);
        for arrow in self.drawn.iter().filter(|arrow| arrow.sort == Sort::CallArrives) {
            // Beside the head.
            let above = |y: u16| if arrow.from < arrow.to { y.checked_sub(1) } else { Some(y + 1) };
            let Some(y) = of.line(arrow.to).and_then(above) else { continue };
            if y < of.area.y || y >= of.area.bottom() {
                continue;
            }
            let Some(method) = log.get(arrow.number).and_then(|of| of.event.kind.method()) else {
                continue;
            };
            let x = of.area.x + arrow.column as u16 + 1;
            let is_free = |x: &u16| buffer.cell((*x, y)).is_some_and(|cell| cell.symbol() == " ");
            let free = (x..of.area.right()).take_while(is_free).count();
            // A space before what comes next.
            let room = if x as usize + free < of.area.right() as usize {
                free.saturating_sub(1)
            } else {
                free
            };
            // The name of the service is what is left out first.
            let (_, short) = method.as_str().rsplit_once('.').unwrap_or(("", method.as_str()));
            let name = match width(method.as_str()) <= room {
                true => method.as_str(),
                false => short,
            };
            if room >= METHOD_MIN.min(width(name)) {
                buffer.set_string(x, y, cut(name, room), style(of, arrow));
            }
        }
    }
}

fn style(of: &Diagram<'_>, arrow: &Arrow) -> Style {
    match arrow.is_related {
        Some(true) => of.theme.title(),
        Some(false) => of.theme.faint(),
        None => of.theme.plain(),
    }
}

/// A line from the lane of the sender to that of the receiver, whose mark is the head.
fn draw(of: &Diagram<'_>, buffer: &mut Buffer, arrow: Arrow) {
    let (top, bottom) = arrow.rows();
    let is_return = arrow.sort == Sort::ReturnArrives;
    let line = |row: usize, beyond: u16| of.line(row).unwrap_or(beyond);
    // Where an end is not on the screen, the line goes on to its edge.
    let first = if top < of.shown.start { of.area.y } else { line(top, of.area.y) + 1 };
    let last =
        if bottom >= of.shown.end { of.area.bottom() } else { line(bottom, of.area.bottom()) };
    let style = style(of, &arrow);
    for y in first..last {
        let is_lane = (y - of.area.y).is_multiple_of(of.high as u16);
        let sign = match (is_return, is_lane) {
            (true, _) => '┊',
            (false, true) => '┼',
            (false, false) => '│',
        };
        of.put(buffer, arrow.column, y, sign, style);
    }
    if let Some(y) = of.line(arrow.from) {
        let sign = if arrow.from < arrow.to { '┬' } else { '┴' };
        of.put(buffer, arrow.column, y, sign, style);
    }
}
