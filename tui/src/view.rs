//! What it looks like, drawn from the state alone.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::state::{Link, Mode, Screen, State};
use crate::text::{cut, seconds, width};

mod form;
mod help;
mod overlay;
mod space_time;
mod table;
mod theme;

pub use theme::Theme;

/// Below this nothing useful can be shown.
pub const WIDTH_MIN: u16 = 60;
/// Likewise.
pub const HEIGHT_MIN: u16 = 12;

/// Where things are.
struct Areas {
    tabs: Rect,
    banner: Rect,
    body: Rect,
    status: Rect,
}

impl Areas {
    fn of(state: &State, whole: Rect) -> Self {
        let banner = u16::from(banner(state).is_some());
        let [tabs, banner, body, status] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(banner),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(whole);
        Self { tabs, banner, body, status }
    }
}

/// How many rows of a table fit.
pub fn page(state: &State, whole: Rect) -> usize {
    usize::from(Areas::of(state, whole).body.height.saturating_sub(1))
}

/// Draws it.
pub fn draw(frame: &mut Frame<'_>, state: &State, theme: &Theme) {
    let whole = frame.area();
    if whole.width < WIDTH_MIN || whole.height < HEIGHT_MIN {
        let text = format!("too small: {WIDTH_MIN}×{HEIGHT_MIN} at least");
        frame.render_widget(Paragraph::new(text), whole);
        return;
    }
    let areas = Areas::of(state, whole);
    tabs(frame, areas.tabs, state, theme);
    if let Some(text) = banner(state) {
        let text = cut(&text, usize::from(areas.banner.width));
        frame.render_widget(Paragraph::new(text).style(theme.banner()), areas.banner);
    }
    match state.table(state.screen) {
        Some(shown) => table::draw(frame, areas.body, state, &shown, theme),
        None => space_time::draw(frame, areas.body, state, theme),
    }
    status(frame, areas.status, state, theme);
    for over in &state.overlays {
        overlay::draw(frame, areas.body, areas.status, state, over, theme);
    }
}

fn tabs(frame: &mut Frame<'_>, area: Rect, state: &State, theme: &Theme) {
    let mut spans = Vec::new();
    for (number, screen) in (1..).zip(Screen::ALL) {
        let style = if screen == state.screen { theme.selected() } else { theme.plain() };
        spans.push(Span::styled(format!(" {number} {} ", screen.title()), style));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
    let wide = Screen::ALL.iter().map(|screen| screen.title().len() + 4).sum::<usize>();
    if usize::from(area.width) > wide + 8 {
        let help = Line::styled("? help ", theme.faint());
        frame.render_widget(Paragraph::new(help).alignment(Alignment::Right), area);
    }
}

/// What must not be overlooked.
fn banner(state: &State) -> Option<String> {
    match &state.link {
        Link::Lost { since_ms, why } => {
            let since = seconds(state.now_ms.saturating_sub(*since_ms));
            Some(format!(
                " CENTRAL IS GONE for {since}: nobody is held any more, the programs go on. \
                 Trying again. ({why})"
            ))
        }
        Link::Connecting if !state.is_recording() => Some(" connecting …".to_owned()),
        _ => None,
    }
}

/// Session, mode, who is held, order; on the right the last answer, or how to get help.
fn status(frame: &mut Frame<'_>, area: Rect, state: &State, theme: &Theme) {
    let mode = match state.mode() {
        Mode::Live => "live",
        Mode::Replay => "replay",
        Mode::Recording => "recording",
    };
    let is_ordered = state.seen.session.as_ref().is_none_or(|view| view.order_guaranteed);
    let order = if is_ordered { "order guaranteed" } else { "ORDER NOT GUARANTEED" };
    let mut text = format!(
        " {} │ {mode} │ {} held, {} waiting │ {order}",
        cut(&state.name, 24),
        state.seen.held(),
        state.seen.waiting(),
    );
    if state.watch_only {
        text.push_str(" │ watch only");
    }
    if state.events.missed > 0 {
        text.push_str(&format!(" │ {} events missed", state.events.missed));
    }
    let room = usize::from(area.width);
    let text = cut(&text, room);
    let left = room.saturating_sub(width(&text) + 3);
    frame.render_widget(Paragraph::new(text).style(theme.status()), area);
    let said = state.message.as_ref().map(|(said, _)| said.as_str());
    let right = match said {
        Some(said) if left >= 12 => cut(said, left),
        None if left >= 6 => "? help".to_owned(),
        _ => String::new(),
    };
    let right = Paragraph::new(format!("{right} ")).alignment(Alignment::Right);
    let beside = Rect { x: area.x + area.width - left as u16, width: left as u16, ..area };
    frame.render_widget(right.style(theme.status()), beside);
}
