//! A line that is typed: a filter, or a command.

use super::session::Seen;
use super::typed::Typed;
use crate::keys::Key;
use crate::words;

/// What the line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Only rows with this text are shown.
    Filter,
    /// Something is done.
    Command,
}

/// What a key did to the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKey {
    /// It goes on.
    Goes,
    /// It is finished.
    Entered,
    /// It is given up.
    Cancelled,
}

/// The line.
#[derive(Clone, Debug)]
pub struct Line {
    purpose: Purpose,
    typed: Typed,
}

impl Line {
    /// A line with this text in it.
    pub fn new(purpose: Purpose, text: &str) -> Self {
        Self { purpose, typed: Typed::new(text) }
    }

    /// What it is for.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// What is in it.
    pub fn text(&self) -> &str {
        self.typed.text()
    }

    /// The same, with the cursor, and with what Tab has offered.
    pub fn typed(&self) -> &Typed {
        &self.typed
    }

    /// A key.
    pub fn handle_key(&mut self, seen: &Seen, key: Key) -> LineKey {
        match (key, self.purpose) {
            (Key::Enter, _) => return LineKey::Entered,
            (Key::Esc | Key::Ctrl('c'), _) => return LineKey::Cancelled,
            (Key::Tab | Key::BackTab, Purpose::Command) => {
                let by = if key == Key::Tab { 1 } else { -1 };
                self.typed.complete(by, |text| words::complete(text, seen));
            }
            (key, _) => {
                self.typed.handle_key(key);
            }
        }
        LineKey::Goes
    }
}
