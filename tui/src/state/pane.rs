//! What is selected in a table whose rows come and go.

use super::table::Table;

/// A selection, and a filter.
#[derive(Clone, Debug, Default)]
pub struct Pane {
    /// Only rows with this text are shown.
    pub filter: String,
    /// What is selected, and where that was last.
    key: Option<String>,
    at: usize,
}

impl Pane {
    /// Which row is selected. If what was selected is gone, what has come into its place.
    pub fn index(&self, table: &Table) -> Option<usize> {
        let last = table.rows.len().checked_sub(1)?;
        let same =
            self.key.as_ref().and_then(|key| table.rows.iter().position(|row| row.key == *key));
        Some(same.unwrap_or(self.at).min(last))
    }

    /// Moves it.
    pub fn step(&mut self, table: &Table, by: isize) {
        let Some(at) = self.index(table) else { return };
        self.at = at.saturating_add_signed(by).min(table.rows.len() - 1);
        self.key = Some(table.rows[self.at].key.clone());
    }

    /// Selects something.
    pub fn select(&mut self, key: String) {
        self.key = Some(key);
    }
}
