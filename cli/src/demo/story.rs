//! What the demo tells while it happens.

use std::io::{self, Write as _};
use std::time::Duration;

use anstyle::Style;
use comfy_table::{CellAlignment, Table, presets};
use ddbx_protocol::control::HoldView;
use ddbx_shop::Options;

use super::DemoError;
use super::debugger::{Around, Stop, Waited, WentOn};
use super::report::{Report, Run};
use super::shop::Shop;
use crate::text::escaped;

/// Where the story goes: to standard error if standard output is for the result.
pub(super) struct Story {
    pub(super) result_is_json: bool,
    pub(super) verbose: bool,
}

impl Story {
    /// What this is about.
    pub(super) fn opens(&self, shop: &Options, hold: Duration) -> Result<(), DemoError> {
        let (deadline, lease) = (seconds(shop.deadline()), seconds(shop.lease()));
        self.say(&format!(
            "A shop: customers buy at gateway, which calls orders, which calls registry,\n\
             inventory and payments. A call must be answered within {deadline}, and inventory\n\
             loses its lease at registry if it does not renew it for {lease}.\n\
             A branch next door has a registry, payments and inventory of its own.\n\
             What happens when inventory stops for {}?",
            seconds(hold)
        ))
    }

    /// The next run begins.
    pub(super) fn chapter(&self, title: &str) -> Result<(), DemoError> {
        let bold = Style::new().bold();
        self.say(&format!("\n{bold}{title}{bold:#}"))
    }

    /// Somebody stands at the breakpoint.
    pub(super) fn hit(&self, hit: &HoldView, hold: Duration) -> Result<(), DemoError> {
        let args = hit.args.as_ref().map(|args| format!(" {args}")).unwrap_or_default();
        self.say(&format!(
            "   hold {}: {} stands before {}{}; it stays there for {}",
            hit.id,
            escaped(&hit.process),
            escaped(&hit.at),
            escaped(&args),
            seconds(hold)
        ))
    }

    /// Who waited for it and who did not.
    pub(super) fn stop(&self, stop: &Stop) -> Result<(), DemoError> {
        let Around { waited, went_on, counted_ms } = &stop.around;
        let counted = seconds(Duration::from_millis(*counted_ms));
        let mut table = table();
        for WentOn { process, calls } in went_on {
            let what = match calls {
                0 => "has nothing to do: whoever calls it waits, or nobody does".to_owned(),
                _ => format!("goes on: {calls} calls in {counted}"),
            };
            table.add_row([format!("  {}", escaped(process)), what]);
        }
        for Waited { process, hold, held_in, at } in waited {
            let what = match hold {
                Some(hold) => format!("waits for hold {hold} in {}", escaped(held_in)),
                None => "is held".to_owned(),
            };
            let at = at.iter().map(|(event, count)| format!("{} ×{count}", escaped(event)));
            let at = at.collect::<Vec<_>>().join(", ");
            table.add_row([format!("  {}", escaped(process)), format!("{what}: {at}")]);
        }
        self.say(&table.trim_fmt())?;
        self.say(&format!("   hold {} goes on after {}", stop.hit.id, seconds(stop.held)))
    }

    /// What came of a run.
    pub(super) fn run(&self, run: &Run) -> Result<(), DemoError> {
        self.say(&format!(
            "   {}: {} failed ({} by their deadline); leases lost: {}",
            counted(run.calls, "order"),
            run.failed(),
            run.deadline_errors,
            leases(run)
        ))
    }

    /// What the processes have printed, if it is wanted.
    pub(super) fn printed(&self, shop: &Shop, is_failure: bool) -> Result<(), DemoError> {
        if self.verbose || is_failure {
            for (name, output) in shop.printed() {
                for line in output.lines() {
                    writeln!(anstream::stderr(), "   {name} | {}", escaped(line))?;
                }
            }
        }
        Ok(())
    }

    /// The three runs side by side, and what follows from them.
    pub(super) fn ends(&self, report: &Report) -> Result<(), DemoError> {
        let Report { baseline, with_ddbx, without_ddbx, .. } = report;
        let mut table = table();
        table.set_header(["", "stopped", "orders", "failed", "leases lost", "slowest order"]);
        let rows = [("nobody stops", baseline), ("ddbx", with_ddbx), ("SIGSTOP", without_ddbx)];
        for (name, run) in rows {
            table.add_row([
                name.to_owned(),
                seconds(Duration::from_millis(run.held_ms)),
                run.calls.to_string(),
                run.failed().to_string(),
                leases(run),
                seconds(Duration::from_millis(run.slowest_ms)),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        self.chapter("All three")?;
        self.say(&table.trim_fmt())?;
        self.say(&format!("\n{}", conclusion(report)))
    }

    fn say(&self, text: &str) -> Result<(), DemoError> {
        if self.result_is_json {
            writeln!(anstream::stderr(), "{text}")?;
        } else {
            writeln!(anstream::stdout(), "{text}")?;
        }
        Ok(())
    }
}

/// What the numbers say.
fn conclusion(report: &Report) -> String {
    let Report { with_ddbx, without_ddbx, wrong, .. } = report;
    if !wrong.is_empty() {
        return format!("Not as it should be: {}.", wrong.join("; "));
    }
    let held = seconds(Duration::from_millis(with_ddbx.held_ms));
    let noticed = match with_ddbx.errors() {
        0 => "and no deadline and no lease noticed".to_owned(),
        errors => format!("and no more went wrong than without a stop ({errors})"),
    };
    format!(
        "ddbx held inventory for {held}, {noticed}.\n\
         The same stop without ddbx broke {} and {}.",
        counted(without_ddbx.failed(), "order"),
        counted(without_ddbx.leases_lost.unwrap_or_default(), "lease")
    )
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

fn leases(run: &Run) -> String {
    run.leases_lost.map_or_else(|| "?".to_owned(), |lost| lost.to_string())
}

fn seconds(length: Duration) -> String {
    match length.as_millis() {
        0 => String::new(),
        millis @ 1..1_000 => format!("{millis} ms"),
        _ => format!("{:.1} s", length.as_secs_f64()),
    }
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

impl From<io::Error> for DemoError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
