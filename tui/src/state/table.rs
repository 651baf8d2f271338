//! Rows and columns, as text.

/// What a screen shows.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// From left to right.
    pub columns: &'static [Column],
    /// From top to bottom.
    pub rows: Vec<Row>,
    /// What to say if there are none.
    pub empty: String,
    /// What else there is to say.
    pub note: &'static str,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its title.
    pub title: &'static str,
    /// How wide it is.
    pub width: Width,
    /// Whether it ends at its right side, as numbers do.
    pub is_number: bool,
    /// It is shown if the screen has at least so many columns of characters.
    pub from: u16,
}

impl Column {
    /// Text that gets a part of what room there is.
    pub const fn text(title: &'static str, weight: u16) -> Self {
        Self { title, width: Width::Weight(weight), is_number: false, from: 0 }
    }

    /// Text of bounded length.
    pub const fn short(title: &'static str, width: u16) -> Self {
        Self { title, width: Width::Fixed(width), is_number: false, from: 0 }
    }

    /// A number.
    pub const fn number(title: &'static str, width: u16) -> Self {
        Self { title, width: Width::Fixed(width), is_number: true, from: 0 }
    }

    /// The same, if the screen is wide enough. What is in it is also in the detail.
    pub const fn from(self, from: u16) -> Self {
        Self { from, ..self }
    }
}

/// How wide a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// So wide.
    Fixed(u16),
    /// A part of what room there is.
    Weight(u16),
}

/// A row.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it is, whatever is shown of it.
    pub key: String,
    /// One for each column.
    pub cells: Vec<Cell>,
    /// What kind of row it is.
    pub mark: Mark,
}

/// What is in a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A part of a whole, and what it is.
    Bar {
        /// From 0 to 1.
        part: f64,
        /// In words.
        text: String,
    },
}

impl Cell {
    /// In words.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Bar { text, .. } => text,
        }
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::Text(text.to_string())
    }
}

/// What kind of row, or line, it is. Its words say the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Nothing special.
    #[default]
    Plain,
    /// The user holds it.
    Held,
    /// It waits.
    Waiting,
    /// It is not in force, or gone.
    Off,
    /// Something is wrong.
    Wrong,
    /// A heading.
    Title,
}

impl Table {
    /// The rows that have this text.
    pub fn only(mut self, text: &str) -> Self {
        if !text.is_empty() {
            let text = text.to_lowercase();
            let has =
                |row: &Row| row.cells.iter().any(|cell| cell.text().to_lowercase().contains(&text));
            self.rows.retain(has);
            self.empty = "nothing here has this text; Esc shows all again".to_owned();
        }
        self
    }
}
