//! What lies over a screen: it gets the keys first.

use super::detail::Detail;
use super::form::{BreakForm, FormKey};
use super::line::{Line, LineKey, Purpose};
use super::{Command, State, help};
use crate::keys::{self, Action, Key};
use crate::words;

/// One of them.
#[derive(Clone, Debug)]
pub enum Overlay {
    /// What keys do.
    Help {
        /// From which line on.
        scroll: usize,
    },
    /// More about something.
    Detail(Detail),
    /// Something must be answered.
    Question(Question),
    /// A line is typed.
    Line(Line),
    /// A breakpoint is made, or changed.
    Form(Box<BreakForm>),
}

/// A question, and what follows from each answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// What is asked.
    pub text: String,
    /// The keys that answer it.
    pub choices: Vec<(Key, &'static str, Vec<Command>)>,
}

/// A key for what was on top.
pub(super) fn handle_key(state: &mut State, top: Overlay, key: Key) -> Vec<Command> {
    match top {
        Overlay::Help { scroll } => {
            if let Some(scroll) = scrolled(state, scroll, key) {
                let most = help::lines(state).len().saturating_sub(1);
                state.overlays.push(Overlay::Help { scroll: scroll.min(most) });
            }
        }
        Overlay::Detail(detail) => return in_detail(state, detail, key),
        Overlay::Question(question) => {
            let answer = question.choices.iter().find(|(answer, ..)| *answer == key);
            if let Some((.., commands)) = answer {
                return commands.clone();
            }
            if key != Key::Esc {
                state.overlays.push(Overlay::Question(question));
            }
        }
        Overlay::Line(line) => return in_line(state, line, key),
        Overlay::Form(mut form) => match form.handle_key(&state.seen, key) {
            FormKey::Goes => state.overlays.push(Overlay::Form(form)),
            FormKey::Closes => {}
            FormKey::Asks(request) => {
                let may = state.may_change();
                if let (false, Some((why, _))) = (may, &state.message) {
                    form.refused(why);
                }
                // It stays until the session has taken it.
                state.overlays.push(Overlay::Form(form));
                if may {
                    return vec![Command::Ask(request)];
                }
            }
        },
    }
    Vec::new()
}

/// Where something that is longer than the screen goes on; none if it is closed.
fn scrolled(state: &State, scroll: usize, key: Key) -> Option<usize> {
    let by = match keys::action(state.screen, state.is_recording(), key) {
        Some(Action::Move(by)) => by,
        Some(Action::Page(by)) => by * state.page as isize,
        Some(Action::First) => isize::MIN,
        Some(Action::Last) => isize::MAX / 2,
        Some(Action::Back | Action::Help | Action::Quit | Action::Open | Action::Why) => {
            return None;
        }
        _ => 0,
    };
    Some(scroll.saturating_add_signed(by))
}

/// More about something: it can be scrolled, and what it is about can go on.
fn in_detail(state: &mut State, detail: Detail, key: Key) -> Vec<Command> {
    let action = keys::action(state.screen, state.is_recording(), key);
    let acts = matches!(
        action,
        Some(
            Action::Continue
                | Action::ContinueAll
                | Action::Release
                | Action::Break
                | Action::Show(_)
        )
    );
    if acts {
        return state.handle_key(key);
    }
    if let Some(scroll) = scrolled(state, detail.scroll, key) {
        let most = super::detail::lines(state, &detail.about).len().saturating_sub(1);
        state.overlays.push(Overlay::Detail(Detail { scroll: scroll.min(most), ..detail }));
    }
    Vec::new()
}

fn in_line(state: &mut State, mut line: Line, key: Key) -> Vec<Command> {
    let typed = line.handle_key(&state.seen, key);
    match (line.purpose(), typed) {
        (Purpose::Filter, LineKey::Cancelled) => state.pane_mut().filter.clear(),
        (Purpose::Command, LineKey::Cancelled) => {}
        (Purpose::Filter, LineKey::Entered) => state.pane_mut().filter = line.text().to_owned(),
        (Purpose::Filter, LineKey::Goes) => {
            state.pane_mut().filter = line.text().to_owned();
            state.overlays.push(Overlay::Line(line));
        }
        (Purpose::Command, LineKey::Goes) => state.overlays.push(Overlay::Line(line)),
        (Purpose::Command, LineKey::Entered) => return words::run(state, line.text()),
    }
    Vec::new()
}
