//! What lies over a screen.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::{Theme, form};
use crate::state::detail::{self, DetailLine};
use crate::state::line::{Line as Typed, Purpose};
use crate::state::overlay::Overlay;
use crate::state::table::Mark;
use crate::state::{State, help};
use crate::text::{around, cut, one_line, width, wrapped};

/// Text in wider windows is hard to read.
const WIDTH_MAX: usize = 100;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    body: Rect,
    bottom: Rect,
    state: &State,
    over: &Overlay,
    theme: &Theme,
) {
    match over {
        Overlay::Help { scroll } => {
            window(frame, body, "help: Esc closes it", &help::lines(state), *scroll, theme);
        }
        Overlay::Detail(shown) => {
            let title = format!("{}: Esc closes it", shown.about.title());
            window(frame, body, &title, &detail::lines(state, &shown.about), shown.scroll, theme);
        }
        Overlay::Question(question) => {
            let mut lines: Vec<DetailLine> = vec![question.text.as_str().into(), "".into()];
            let choices = question.choices.iter();
            lines.extend(choices.map(|(key, does, _)| format!("  {key}  {does}").into()));
            window(frame, body, "a question", &lines, 0, theme);
        }
        Overlay::Line(line) => typed(frame, bottom, line),
        Overlay::Form(shown) => form::draw(frame, body, shown, &state.seen, theme),
    }
}

/// A line that is typed, with what could stand there.
fn typed(frame: &mut Frame<'_>, area: Rect, line: &Typed) {
    let before = match line.purpose() {
        Purpose::Filter => "/",
        Purpose::Command => ":",
    };
    let room = usize::from(area.width).saturating_sub(2);
    let (left, right) = line.typed().halves();
    let part = around(left, right, room);
    let mut text = format!("{before}{}", part.text);
    if let Some((offers, at)) = line.typed().offers() {
        // What is in the line already is not said again.
        let rest = offers.iter().cycle().skip(at + 1).take(offers.len() - 1);
        let rest = listed(rest, offers.len() - 1, room.saturating_sub(width(&text) + 4));
        text.push_str(&format!("    {rest}"));
    }
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(text), area);
    let x = area.x + 1 + part.cursor as u16;
    frame.set_cursor_position(Position { x, y: area.y });
}

/// As many of these lines as fit: what is last in them, which is where they differ.
fn listed<'a>(lines: impl Iterator<Item = &'a String>, number: usize, room: usize) -> String {
    let mut left = number;
    let mut text = String::new();
    for line in lines {
        let last = line.split_whitespace().next_back().unwrap_or_default();
        let more = if left == 1 { 0 } else { width("… 000 more") };
        if width(&text) + width(last) + more > room {
            break;
        }
        text.push_str(&format!("{}  ", one_line(last)));
        left -= 1;
    }
    if left > 0 {
        text.push_str(&cut(&format!("… {left} more"), room.saturating_sub(width(&text))));
    }
    text
}

/// How many columns of text a window has.
pub(super) fn room(area: Rect) -> usize {
    usize::from(area.width.saturating_sub(4)).min(WIDTH_MAX)
}

/// Lines in a frame, as large as they need it. What does not fit is said to be there.
/// Where it is.
pub(super) fn window(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    lines: &[DetailLine],
    scroll: usize,
    theme: &Theme,
) -> Rect {
    let most = room(area);
    let pieces = |line: &DetailLine| {
        let mark = line.mark;
        wrapped(&line.text, most).into_iter().map(move |text| (text, mark)).collect::<Vec<_>>()
    };
    let lines: Vec<(String, Mark)> = lines.iter().flat_map(pieces).collect();
    let longest = lines.iter().map(|(text, _)| width(text)).max().unwrap_or_default();
    let wide = longest.max(width(title) + 2).min(most) as u16 + 4;
    let high = (lines.len() as u16).saturating_add(2).min(area.height);
    let place = Rect {
        x: area.x + area.width.saturating_sub(wide) / 2,
        y: area.y + (area.height - high) / 2,
        width: wide.min(area.width),
        height: high,
    };
    let rows = usize::from(high.saturating_sub(2));
    let scroll = scroll.min(lines.len().saturating_sub(rows));
    let mut block = Block::bordered().title(format!(" {title} "));
    if lines.len() > rows {
        let part = format!(" {}–{} of {}: ↓ ↑ ", scroll + 1, scroll + rows, lines.len());
        block = block.title_bottom(part);
    }
    let shown = lines.into_iter().skip(scroll).take(rows);
    let shown = shown.map(|(text, mark)| Line::styled(format!(" {text}"), theme.mark(mark)));
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(shown.collect::<Vec<_>>()).block(block), place);
    place
}
