//! A picture of what `rpc` has measured: throughput over that of bare tarpc.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Args;

use crate::rpc;
use crate::rpc::abba::Row;
use crate::rpc::variants::{BREAKS_OVER_IDLE, NULL};

/// What is shown.
const CELL: &str = "tcp/echo/64";
const TITLE: &str = "Throughput over bare tarpc (TCP, one core, 64 calls outstanding)";

/// In pixels.
const LEFT: f64 = 220.0;
const WIDE: f64 = 400.0;
const LINE: f64 = 30.0;
const TOP: f64 = 58.0;
const BAR: f64 = 18.0;

const STYLE: &str = "text{font:14px system-ui,sans-serif;fill:#d6dae0}.h{font-weight:600}\
                     .d{fill:#8b949e}.r{text-anchor:end}";

/// From where, and to where.
#[derive(Args)]
pub struct ChartArgs {
    /// What `rpc` has written, if not beside this program
    #[arg(long)]
    from: Option<PathBuf>,

    /// The picture, if not the one of the README
    #[arg(long)]
    to: Option<PathBuf>,
}

/// Draws it; true if that is done.
pub fn run(args: &ChartArgs) -> bool {
    let drawn = draw(args);
    match &drawn {
        Ok(to) => eprintln!("chart: {}", to.display()),
        Err(error) => eprintln!("chart: {error}"),
    }
    drawn.is_ok()
}

fn draw(args: &ChartArgs) -> io::Result<PathBuf> {
    let from = args.from.clone().map_or_else(rpc::results, Ok)?;
    let text = fs::read_to_string(&from).map_err(|error| {
        let (from, why) = (from.display(), "first measure: ddbx-bench rpc");
        io::Error::other(format!("{from}: {error}; {why}"))
    })?;
    let mut rows = Vec::new();
    for line in text.lines() {
        let row: Row = serde_json::from_str(line)?;
        if row.cell == CELL && row.variant != BREAKS_OVER_IDLE {
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err(io::Error::other(format!("{} has no rows of {CELL}", from.display())));
    }
    let readme = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/overhead.svg");
    let to = args.to.clone().unwrap_or_else(readme);
    fs::write(&to, svg(&rows))?;
    Ok(to)
}

/// A bar for each row, and its quartiles.
fn svg(rows: &[Row]) -> String {
    let (wide, high) = (LEFT + WIDE + 80.0, TOP + LINE * rows.len() as f64 + 34.0);
    let bottom = high - 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" \
         width=\"{wide}\" height=\"{high}\" role=\"img\">\n<title>{TITLE}</title>\n\
         <style>{STYLE}</style>\n\
         <rect x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"9\" fill=\"#15181e\" \
         stroke=\"#4a515c\"/>\n<text class=\"h\" x=\"18\" y=\"30\">{TITLE}</text>\n",
        wide - 1.0,
        high - 1.0,
    );
    for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let x = LEFT + WIDE * part;
        _ = writeln!(
            svg,
            "<path d=\"M{x} {}V{bottom}\" stroke=\"#2d333b\"/>\
             <text class=\"d\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{part}</text>",
            TOP - 8.0,
            high - 12.0,
        );
    }
    for (nth, row) in rows.iter().enumerate() {
        let y = TOP + LINE * nth as f64;
        let (base, middle) = (y + 14.0, y + BAR / 2.0);
        let at = |ratio: f64| LEFT + WIDE * ratio.clamp(0.0, 1.1);
        let ratio = &row.throughput;
        let colour = match row.variant.as_str() {
            NULL => "#8b949e",
            name if is_ours(name) => "#79c0ff",
            _ => "#f2cc60",
        };
        _ = writeln!(
            svg,
            "<text class=\"r\" x=\"{}\" y=\"{base}\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"3\" \
             fill=\"{colour}\"/>\
             <path d=\"M{:.1} {middle}H{:.1}\" stroke=\"#ff7b72\" stroke-width=\"2\"/>\
             <text x=\"{:.1}\" y=\"{base}\">{:.2}</text>",
            LEFT - 12.0,
            row.variant,
            at(ratio.median) - LEFT,
            at(ratio.quartile),
            at(ratio.upper_quartile),
            at(ratio.median.max(ratio.upper_quartile)) + 8.0,
            ratio.median,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Whether it is what ddbx does, not what others do.
fn is_ours(variant: &str) -> bool {
    use rpc::variants::{BREAKS, IDLE, RECORDS, RECORDS_EXACTLY, RECORDS_PAYLOADS, WITHOUT};
    [WITHOUT, IDLE, BREAKS, RECORDS, RECORDS_PAYLOADS, RECORDS_EXACTLY].contains(&variant)
}
