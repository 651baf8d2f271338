//! Tables for people: plain columns, as wide as the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// A table of these columns; those of numbers are marked with `true`.
pub(crate) fn table(
    columns: &[(&str, bool)],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    if let Some((width, _)) = terminal_size::terminal_size() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.0);
    }
    table.set_header(columns.iter().map(|(name, _)| *name));
    table.add_rows(rows);
    for (column, (_, is_number)) in table.column_iter_mut().zip(columns) {
        if *is_number {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
