//! A breakpoint that is made, or changed.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::Theme;
use crate::state::form::BreakForm;

pub(super) fn draw(_frame: &mut Frame<'_>, _area: Rect, _form: &BreakForm, _theme: &Theme) {}
