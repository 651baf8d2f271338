//! A breakpoint that is made, or changed.

use ddbx_protocol::BreakpointId;
use ddbx_protocol::control::{BreakpointView, Request, Wanted};

use super::session::Seen;
use crate::keys::Key;

/// What is filled in so far.
#[derive(Clone, Debug)]
pub struct BreakForm {
    changes: Option<BreakpointId>,
    wanted: Wanted,
    error: Option<String>,
}

/// What a key did to the form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormKey {
    /// It goes on.
    Goes,
    /// It is closed.
    Closes,
    /// It is filled in.
    Asks(Request),
}

impl BreakForm {
    /// A new one, with a place as far as that is known.
    pub fn at(place: &str) -> Self {
        let wanted = Wanted { spec: place.to_owned(), ..Wanted::default() };
        Self { changes: None, wanted, error: None }
    }

    /// One that changes a breakpoint.
    pub fn of(view: &BreakpointView) -> Self {
        Self { changes: Some(view.id), wanted: view.wanted.clone(), error: None }
    }

    /// The session has refused it.
    pub fn refused(&mut self, why: &str) {
        self.error = Some(why.to_owned());
    }

    /// A key.
    pub fn handle_key(&mut self, _seen: &Seen, key: Key) -> FormKey {
        match key {
            Key::Esc => FormKey::Closes,
            Key::Enter => FormKey::Asks(match self.changes {
                Some(breakpoint) => Request::Change { breakpoint, wanted: self.wanted.clone() },
                None => Request::Break(self.wanted.clone()),
            }),
            _ => FormKey::Goes,
        }
    }
}
