//! Rows and columns.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::Theme;
use crate::state::State;
use crate::state::table::{Cell, Column, Row, Table, Width};
use crate::text::{cut, one_line, padded, width};

/// How much of a bar there is, of the eighths of a character.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// How much of a bar is words.
const BAR_TEXT: usize = 9;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, table: &Table, theme: &Theme) {
    let columns = table.columns.iter().enumerate();
    let columns: Vec<_> = columns.filter(|(_, column)| area.width >= column.from).collect();
    let places = places(area.width.saturating_sub(1), &columns);
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let titles = columns.iter().zip(&places);
    let titles = titles.map(|((_, column), place)| fitted(column.title, *place, column.is_number));
    let titles = titles.collect::<Vec<_>>().join(" ");
    frame.render_widget(Paragraph::new(format!(" {titles}")).style(theme.title()), head);
    let filter = &state.pane(state.screen).filter;
    if table.rows.is_empty() {
        let text = match filter.is_empty() {
            true => format!("  {}", table.empty),
            false => format!("  /{}: {}", one_line(filter), table.empty),
        };
        let text = cut(&text, usize::from(body.width));
        frame.render_widget(Paragraph::new(text).style(theme.faint()), body);
        return;
    }
    let height = usize::from(body.height);
    let selected = state.pane(state.screen).index(table).unwrap_or_default();
    // What is not shown is counted on the last line.
    let has_foot = table.rows.len() > height || !filter.is_empty() || !table.note.is_empty();
    let rows = height - usize::from(has_foot);
    let first = selected.saturating_sub(rows / 2).min(table.rows.len().saturating_sub(rows));
    let lines = table.rows.iter().enumerate().skip(first).take(rows).map(|(at, row)| {
        let cells = columns.iter().zip(&places).map(|(column, place)| cell(row, *column, *place));
        let cells = cells.collect::<Vec<_>>().join(" ");
        let style = theme.mark(row.mark);
        match at == selected {
            true => Line::styled(format!("▸{cells} "), style.patch(theme.selected())),
            false => Line::styled(format!(" {cells}"), style),
        }
    });
    let mut lines: Vec<Line<'_>> = lines.collect();
    if has_foot {
        lines.resize(rows, Line::default());
        let mut text = format!("  {} of {}", selected + 1, table.rows.len());
        if !filter.is_empty() {
            text.push_str(&format!(" with /{}; Esc shows all", one_line(filter)));
        }
        if !table.note.is_empty() {
            text.push_str(&format!("   {}", table.note));
        }
        lines.push(Line::styled(cut(&text, usize::from(body.width)), theme.faint()));
    }
    frame.render_widget(Paragraph::new(lines), body);
}

/// How wide each column is.
fn places(room: u16, columns: &[(usize, &Column)]) -> Vec<usize> {
    let parts = columns.iter().map(|(_, column)| match column.width {
        Width::Fixed(width) => (width, 0),
        Width::Weight(weight) => (0, weight),
    });
    let parts: Vec<(u16, u16)> = parts.collect();
    let fixed: u16 = parts.iter().map(|(width, _)| width + 1).sum();
    let weights: u16 = parts.iter().map(|(_, weight)| weight).sum();
    let left = u32::from(room.saturating_sub(fixed));
    let mut passed = 0;
    let places = parts.iter().map(|(width, weight)| {
        let until = |passed: u16| left * u32::from(passed) / u32::from(weights.max(1));
        let from = until(passed);
        passed += weight;
        usize::from(*width) + (until(passed) - from) as usize
    });
    places.collect()
}

/// A cell in exactly so many columns.
fn cell(row: &Row, (at, column): (usize, &Column), place: usize) -> String {
    match row.cells.get(at) {
        Some(Cell::Bar { part, text }) => {
            let bar = bar(*part, place.saturating_sub(BAR_TEXT + 1));
            format!("{} {bar}", fitted(text, BAR_TEXT.min(place), true))
        }
        Some(Cell::Text(text)) => fitted(text, place, column.is_number),
        None => " ".repeat(place),
    }
}

/// A text in exactly so many columns.
fn fitted(text: &str, columns: usize, is_number: bool) -> String {
    if !is_number {
        return padded(text, columns);
    }
    let cut = cut(text, columns);
    " ".repeat(columns.saturating_sub(width(&cut))) + &cut
}

/// A part of so many columns.
fn bar(part: f64, columns: usize) -> String {
    let eighths = (part.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize;
    padded(&("█".repeat(eighths / 8) + EIGHTHS[eighths % 8]), columns)
}
