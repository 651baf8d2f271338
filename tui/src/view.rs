//! What it looks like, drawn from the state alone.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::state::{Link, Mode, Screen, State};
use crate::text::{cut, micros_of, seconds, width};

mod form;
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
    message: Rect,
    status: Rect,
}

impl Areas {
    fn of(state: &State, whole: Rect) -> Self {
        let banner = u16::from(banner(state).is_some());
        let [tabs, banner, body, message, status] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(banner),
            Constraint::Min(1),
            Constraint::Length(1),
            Constraint::Length(1),
        ])
        .areas(whole);
        Self { tabs, banner, body, message, status }
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
    message(frame, areas.message, state, theme);
    status(frame, areas.status, state, theme);
    for over in &state.overlays {
        overlay::draw(frame, areas.body, areas.message, state, over, theme);
    }
}

fn tabs(frame: &mut Frame<'_>, area: Rect, state: &State, theme: &Theme) {
    let wide: usize = Screen::ALL.iter().map(|screen| width(screen.title()) + 4).sum();
    let room = match usize::from(area.width) {
        room if room >= wide => room,
        room => room / Screen::ALL.len() - 4,
    };
    let mut spans = Vec::new();
    for (number, screen) in (1..).zip(Screen::ALL) {
        let style = if screen == state.screen { theme.selected() } else { theme.plain() };
        spans.push(Span::styled(format!(" {number} {} ", cut(screen.title(), room)), style));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

/// What must not be overlooked.
fn banner(state: &State) -> Option<String> {
    match &state.link {
        Link::Lost { since_ms, .. } => {
            let since = seconds(state.now_ms.saturating_sub(*since_ms));
            Some(format!(
                " CENTRAL IS GONE for {since}: nobody is held, programs go on; trying again"
            ))
        }
        Link::Connecting if !state.is_recording() => Some(" connecting …".to_owned()),
        _ => None,
    }
}

/// Session, mode, who is held, order.
fn status(frame: &mut Frame<'_>, area: Rect, state: &State, theme: &Theme) {
    let mode = match state.mode() {
        Mode::Live => "live",
        Mode::Replay => "replay",
        Mode::Recording => "recording",
    };
    let is_ordered = state.seen.session.as_ref().is_none_or(|view| view.order_guaranteed);
    let order = if is_ordered { "order guaranteed" } else { "ORDER NOT GUARANTEED" };
    let name = cut(&state.name, 24);
    let mut text = match state.cursor() {
        Some((done, all, at)) => format!(
            " {name} │ {mode} │ {}: event {done} of {all} │ {} stand still",
            micros_of(at),
            state.seen.holds.len(),
        ),
        // Without central nobody is held, and only delays are kept.
        None if matches!(state.link, Link::Lost { .. }) => {
            format!(" {name} │ {mode} │ not connected, this is old │ ORDER NOT GUARANTEED")
        }
        None => format!(
            " {name} │ {mode} │ {} held, {} waiting │ {order}",
            state.seen.held(),
            state.seen.waiting(),
        ),
    };
    if state.watch_only && !state.is_recording() {
        text.push_str(" │ watch only");
    }
    if state.events.missed > 0 {
        text.push_str(&format!(" │ {} events missed", state.events.missed));
    }
    let text = cut(&text, usize::from(area.width));
    frame.render_widget(Paragraph::new(text).style(theme.status()), area);
}

/// The last answer, or what can be done here.
fn message(frame: &mut Frame<'_>, area: Rect, state: &State, theme: &Theme) {
    let room = usize::from(area.width).saturating_sub(1);
    let (text, style) = match &state.message {
        Some((said, _)) => (cut(said, room), theme.title()),
        None => (cut(hint(state), room), theme.faint()),
    };
    frame.render_widget(Paragraph::new(format!(" {text}")).style(style), area);
}

/// The keys that are wanted most.
fn hint(state: &State) -> &'static str {
    if state.is_recording() {
        return "] [ time   } { faster   Enter more   / filter   w why   ? help   q quit";
    }
    match state.screen {
        Screen::Processes => "b breakpoint   p pause   c continue   w why   Enter more   ? help",
        Screen::Holds => "w why   Enter more   c continue   C continue all   r release   ? help",
        Screen::Calls => "b breakpoint here   w why   Enter more   / filter   ? help",
        Screen::Breakpoints => "b new   e edit   Space on or off   d delete   ? help",
        Screen::SpaceTime => "← → ↓ ↑ select   + - zoom   Space follow or stay   b break   ? help",
        Screen::Events => "Space follow or stay   n N same control   / filter   b break   ? help",
        Screen::Log => "/ filter   Enter more   ? help",
    }
}
