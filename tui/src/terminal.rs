//! The terminal: taken over for the screen, and given back however that ends.

use std::io::{self, Stdout, stdout};
use std::sync::Once;

use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEvent, KeyEventKind,
    KeyModifiers,
};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::backend::CrosstermBackend;

use crate::keys::Key;

/// The terminal, as long as this lives.
pub(crate) struct Terminal {
    drawn: ratatui::Terminal<CrosstermBackend<Stdout>>,
}

impl Terminal {
    /// Takes it over.
    pub(crate) fn take() -> io::Result<Self> {
        give_back_after_a_panic();
        enable_raw_mode()?;
        let entered = execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste);
        let drawn = entered.and_then(|()| ratatui::Terminal::new(CrosstermBackend::new(stdout())));
        if drawn.is_err() {
            give_back();
        }
        Ok(Self { drawn: drawn? })
    }

    /// Draws all of it; what has not changed is not sent.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        self.drawn.draw(draw).map(drop)
    }

    /// How large it is.
    pub(crate) fn area(&self) -> io::Result<ratatui::layout::Rect> {
        self.drawn.size().map(Into::into)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.drawn.show_cursor();
        give_back();
    }
}

fn give_back() {
    // There is nobody to tell that it does not work.
    let _ =
        execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, crossterm::cursor::Show);
    let _ = disable_raw_mode();
}

/// A panic is told on a terminal on which it can be read.
fn give_back_after_a_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
    });
}

/// What somebody has done at the terminal.
pub(crate) enum Input {
    /// Pressed a key.
    Key(Key),
    /// Pasted a text.
    Paste(String),
    /// Something after which all is drawn again.
    Other,
}

impl From<Event> for Input {
    fn from(event: Event) -> Self {
        match event {
            Event::Key(key) => key_of(key).map_or(Self::Other, Self::Key),
            Event::Paste(text) => Self::Paste(text),
            _ => Self::Other,
        }
    }
}

fn key_of(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let is_ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char(character) if is_ctrl => Key::Ctrl(character.to_ascii_lowercase()),
        KeyCode::Char(character) => Key::Char(character),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        _ => return None,
    })
}
