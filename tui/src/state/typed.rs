//! Text that is typed, and how it could go on.

use tui_input::{Input, InputRequest};

use crate::keys::Key;

/// The text.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    input: Input,
    /// What Tab has offered, and which of it is in the text.
    offers: Vec<String>,
    offer: usize,
}

impl Typed {
    /// This text, with the cursor at its end.
    pub fn new(text: &str) -> Self {
        Self { input: Input::new(text.to_owned()), ..Self::default() }
    }

    /// What is in it.
    pub fn text(&self) -> &str {
        self.input.value()
    }

    /// What stands before the cursor, and what behind it.
    pub fn halves(&self) -> (&str, &str) {
        let text = self.text();
        let at = text.char_indices().nth(self.input.cursor()).map_or(text.len(), |(at, _)| at);
        text.split_at(at)
    }

    /// What Tab has offered, and which of it is in the text; nothing if there is no choice.
    pub fn offers(&self) -> Option<(&[String], usize)> {
        (!self.offers.is_empty()).then_some((&self.offers, self.offer))
    }

    /// A key that types, deletes or moves. What was offered is settled by it. Whether the
    /// text is another now.
    pub fn handle_key(&mut self, key: Key) -> bool {
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
        self.settle();
        self.input.handle(request).is_some_and(|changed| changed.value)
    }

    /// Keeps what is in the text of what was offered. Whether there was a choice.
    pub fn settle(&mut self) -> bool {
        !std::mem::take(&mut self.offers).is_empty()
    }

    /// Puts in what is offered; if that is not clear the first, and with the next time the
    /// next. Whether there was anything.
    pub fn complete(&mut self, by: isize, offer: impl FnOnce(&str) -> Vec<String>) -> bool {
        if self.offers.is_empty() {
            self.offers = offer(self.text());
            self.offer = 0;
        } else {
            let number = self.offers.len() as isize;
            self.offer = (self.offer as isize + by).rem_euclid(number) as usize;
        }
        let Some(text) = self.offers.get(self.offer) else { return false };
        self.input = Input::new(text.clone());
        if self.offers.len() == 1 {
            self.offers.clear();
        }
        true
    }
}
