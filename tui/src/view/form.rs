//! A breakpoint that is made, or changed.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};

use super::Theme;
use super::overlay::{room, window};
use crate::state::detail::DetailLine;
use crate::state::form::{BreakForm, Content, Fault, Field};
use crate::state::session::Seen;
use crate::state::table::Mark;
use crate::text::{around, cut, escaped, width, wrapped};

/// How far what is filled in stands from the left: behind a sign and the longest title.
const INDENT: usize = 15;

/// How many offers are shown at the most.
const OFFERS_MAX: usize = 6;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    form: &BreakForm,
    seen: &Seen,
    theme: &Theme,
) {
    let room = room(area);
    let rows = usize::from(area.height.saturating_sub(2));
    let mut lines = Vec::new();
    // Where keys go: the line, the column, and the last line that belongs to it.
    let (mut line, mut column, mut last) = (0, None, 0);
    for field in Field::ALL {
        let is_here = field == form.focus();
        let sign = match form.fault(field) {
            _ if is_here => "›",
            Some(_) => "!",
            None => " ",
        };
        let (text, hidden, cursor) = filled_in(form, field, room - INDENT);
        let text = format!("{sign} {:<12} {text}", field.title());
        let mark = if is_here { Mark::Title } else { Mark::Plain };
        lines.push(DetailLine { text: padded_to(&text, room), mark });
        if is_here {
            (line, column) = (lines.len() - 1, cursor);
            under(&mut lines, form, field, hidden, room);
            let left = rows.saturating_sub(lines.len() - line).clamp(2, OFFERS_MAX);
            offers(&mut lines, form, seen, left, room);
            last = lines.len() - 1;
        }
    }
    if let Some(why) = form.refusal() {
        last = lines.len() + why.lines().count() - 1;
        lines.extend(
            why.lines().map(|text| DetailLine { text: cut(text, room), mark: Mark::Wrong }),
        );
    }
    lines.push(DetailLine { text: keys(form, seen).to_owned(), mark: Mark::Off });
    let scroll = (last + 1).saturating_sub(rows).min(line);
    let title = match form.changes() {
        Some(id) => format!("breakpoint {id}: Enter changes it, Esc leaves it"),
        None => "a new breakpoint: Enter sets it, Esc does not".to_owned(),
    };
    let place = window(frame, area, &title, &lines, scroll, theme);
    if let Some(column) = column {
        let x = place.x + 2 + (INDENT + column) as u16;
        frame.set_cursor_position(Position { x, y: place.y + 1 + (line - scroll) as u16 });
    }
}

fn padded_to(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// What is in a field; how much of it is hidden on the left, and where the cursor is if it
/// can be typed into.
fn filled_in(form: &BreakForm, field: Field, room: usize) -> (String, usize, Option<usize>) {
    let is_here = field == form.focus();
    match form.content(field) {
        Content::Choice(choices, chosen) => {
            let choices = choices.iter().enumerate().map(|(at, choice)| match at == chosen {
                true => format!("[{choice}]"),
                false => format!(" {choice} "),
            });
            (choices.collect::<Vec<_>>().join(" "), 0, None)
        }
        Content::Text(typed) if is_here => {
            let (before, after) = typed.halves();
            let part = around(before, after, room);
            (part.text, part.hidden, Some(part.cursor))
        }
        Content::Text(typed) if typed.text().is_empty() => (field.empty().to_owned(), 0, None),
        Content::Text(typed) => (cut(typed.text(), room), 0, None),
    }
}

/// What is wrong, with a mark under the place; or what the field is for.
fn under(lines: &mut Vec<DetailLine>, form: &BreakForm, field: Field, hidden: usize, room: usize) {
    let Some(Fault { what, at }) = form.fault(field) else {
        let help = wrapped(field.help(), room - INDENT);
        lines.extend(help.iter().map(|text| indented(text, Mark::Off)));
        return;
    };
    let mut sentence = what.clone();
    if let (Some(at), Content::Text(typed)) = (at, form.content(field)) {
        let before: String = typed.text().chars().take(*at).collect();
        let column = width(&escaped(&before)).saturating_sub(hidden);
        let column = column.min(room - INDENT - 1);
        let mark = format!("{}^", " ".repeat(column));
        // Both on one line if they fit.
        if column + 2 + width(what) <= room - INDENT {
            sentence = format!("{mark} {what}");
        } else {
            lines.push(indented(&mark, Mark::Wrong));
        }
    }
    let sentence = wrapped(&sentence, room - INDENT);
    lines.extend(sentence.iter().map(|text| indented(text, Mark::Wrong)));
}

/// How the place could go on, around what is in the field already.
fn offers(lines: &mut Vec<DetailLine>, form: &BreakForm, seen: &Seen, most: usize, room: usize) {
    let (offers, chosen) = form.offers(seen);
    let shown = if offers.len() > most { most - 1 } else { offers.len() };
    let first = chosen.unwrap_or_default().saturating_sub(shown / 2).min(offers.len() - shown);
    for (at, offer) in offers.iter().enumerate().skip(first).take(shown) {
        let sign = if chosen == Some(at) { "›" } else { " " };
        let mark = if chosen == Some(at) { Mark::Title } else { Mark::Plain };
        lines.push(indented(&format!("{sign} {}", cut(offer, room - INDENT - 2)), mark));
    }
    if offers.len() > shown {
        lines.push(indented(&format!("  … {} more", offers.len() - shown), Mark::Off));
    }
}

fn indented(text: &str, mark: Mark) -> DetailLine {
    DetailLine { text: format!("{}{text}", " ".repeat(INDENT)), mark }
}

/// What keys do here.
fn keys(form: &BreakForm, seen: &Seen) -> &'static str {
    let (offers, chosen) = form.offers(seen);
    match form.content(form.focus()) {
        _ if form.is_asked() => "the session is asked …",
        _ if chosen.is_some() => "Tab: the next of these, →: take it, ↓ ↑: other fields",
        _ if !offers.is_empty() => "Tab: complete it, ↓ ↑: other fields",
        Content::Text(_) => "Tab ↓ ↑: other fields",
        Content::Choice(..) => "Space: the other, Tab ↓ ↑: other fields",
    }
}
