//! Colours, and what there is instead of them. Only the sixteen colours that every
//! terminal has its own idea of, and never the only sign of anything.

use ratatui::style::{Color, Modifier, Style};

use crate::state::table::Mark;

/// How things are told apart.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    is_coloured: bool,
}

impl Theme {
    /// With colours, or without.
    pub fn new(is_coloured: bool) -> Self {
        Self { is_coloured }
    }

    /// As the environment wants it.
    pub fn from_environment() -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        Self::new(!is_set("NO_COLOR"))
    }

    fn coloured(self, colour: Color) -> Style {
        if self.is_coloured { Style::new().fg(colour) } else { Style::new() }
    }

    /// Nothing special.
    pub fn plain(self) -> Style {
        Style::new()
    }

    /// Less important.
    pub fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// A heading.
    pub fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What is selected.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What must not be overlooked.
    pub fn banner(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    /// The line at the bottom.
    pub fn status(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A row, or a line, of a kind.
    pub fn mark(self, mark: Mark) -> Style {
        match mark {
            Mark::Plain => self.plain(),
            Mark::Held => self.coloured(Color::Red).add_modifier(Modifier::BOLD),
            Mark::Waiting => self.coloured(Color::Magenta),
            Mark::Off => self.faint(),
            Mark::Wrong => self.coloured(Color::Red),
            Mark::Title => self.title(),
        }
    }
}
