//! The diagram.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::Paragraph;

use super::Theme;
use crate::state::State;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, theme: &Theme) {
    let _ = state;
    frame.render_widget(Paragraph::new("nothing has happened").style(theme.faint()), area);
}
