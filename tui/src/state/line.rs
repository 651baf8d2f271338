//! A line that is typed: a filter, or a command.

use tui_input::{Input, InputRequest};

use super::session::Seen;
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
    input: Input,
    /// What Tab has offered, and which of it is in the line.
    offers: Vec<String>,
    offer: usize,
}

impl Line {
    /// A line with this text in it.
    pub fn new(purpose: Purpose, text: &str) -> Self {
        Self { purpose, input: Input::new(text.to_owned()), offers: Vec::new(), offer: 0 }
    }

    /// What it is for.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// What is in it.
    pub fn text(&self) -> &str {
        self.input.value()
    }

    /// Where the next character goes, in columns.
    pub fn cursor(&self) -> usize {
        self.input.visual_cursor()
    }

    /// What could stand at its end.
    pub fn offers(&self) -> &[String] {
        &self.offers
    }

    /// A key.
    pub fn handle_key(&mut self, seen: &Seen, key: Key) -> LineKey {
        match key {
            Key::Enter => return LineKey::Entered,
            Key::Esc | Key::Ctrl('c') => return LineKey::Cancelled,
            Key::Tab if self.purpose == Purpose::Command => self.complete(seen),
            key => {
                if type_into(&mut self.input, key) {
                    self.offers.clear();
                }
            }
        }
        LineKey::Goes
    }

    /// Puts in what is meant; if that is not clear, the first, and with the next Tab the next.
    fn complete(&mut self, seen: &Seen) {
        if self.offers.is_empty() {
            self.offers = words::complete(self.text(), seen);
            self.offer = 0;
        } else {
            self.offer = (self.offer + 1) % self.offers.len();
        }
        if let Some(text) = self.offers.get(self.offer) {
            self.input = Input::new(text.clone());
        }
        if self.offers.len() == 1 {
            self.offers.clear();
        }
    }
}

/// Types a key; whether the text is another now.
pub fn type_into(input: &mut Input, key: Key) -> bool {
    let request = match key {
        Key::Char(character) => InputRequest::InsertChar(character),
        Key::Backspace | Key::Ctrl('h') => InputRequest::DeletePrevChar,
        Key::Delete => InputRequest::DeleteNextChar,
        Key::Left => InputRequest::GoToPrevChar,
        Key::Right => InputRequest::GoToNextChar,
        Key::Home | Key::Ctrl('a') => InputRequest::GoToStart,
        Key::End | Key::Ctrl('e') => InputRequest::GoToEnd,
        Key::Ctrl('w') => InputRequest::DeletePrevWord,
        Key::Ctrl('u') => InputRequest::DeleteLine,
        Key::Ctrl('k') => InputRequest::DeleteTillEnd,
        _ => return false,
    };
    input.handle(request).is_some_and(|changed| changed.value)
}
