//! What the rows have to show. Only what was measured is judged.

use super::abba::Row;
use super::others::OTLP;
use super::variants::{BREAKS_OVER_IDLE, IDLE, NULL, RECORDS, WITHOUT};
use crate::verdict::{Verdict, at_least, at_most, known};

const LOADED: &str = "tcp/echo/64";
const SINGLE: &str = "tcp/echo/1";
/// A bare call takes a half or a third of the time here, for 64 are sent at once. What is added
/// is the same, and so is its goal; a ratio to so little is shown, but no goal was set for it.
const TOGETHER: &str = "tcp/echo/64/current-thread";

const WITHOUT_MICROS_MAX: f64 = 0.1;
const IDLE_MICROS_MAX: f64 = 0.5;

/// So much may be chance where there is a goal, and where what is compared to it lies: or rounds
/// go on.
const DOUBT_MAX: f64 = 0.01;
const DOUBT_MICROS_MAX: f64 = 0.05;

/// Whether enough is known of a row for its goal, if it has one.
pub fn is_clear(row: &Row) -> bool {
    let throughput = || row.throughput.doubt() < DOUBT_MAX;
    match (row.cell.as_str(), row.variant.as_str()) {
        (LOADED | TOGETHER, NULL | WITHOUT | IDLE) => {
            throughput() && row.cpu_micros_added.doubt() < DOUBT_MICROS_MAX
        }
        (LOADED, BREAKS_OVER_IDLE | RECORDS) => throughput(),
        (SINGLE, NULL | IDLE) => row.p50.doubt() < DOUBT_MAX,
        _ => true,
    }
}

/// Of all rows.
pub fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for row in rows {
        let of_cell = |variant: &str| {
            rows.iter().find(|other| other.cell == row.cell && other.variant == variant)
        };
        let Some(null) = of_cell(NULL) else { continue };
        let throughput = |min| {
            let what = format!("{}, {}, throughput", row.cell, row.variant);
            at_least(what, row.throughput.median, min).give_or_take(null.throughput.doubt()).ratio()
        };
        let shown = || {
            let what = format!("{}, {}, throughput", row.cell, row.variant);
            known(what, row.throughput.median).give_or_take(null.throughput.doubt()).ratio()
        };
        let cpu = |max| {
            let what = format!("{}, {}, CPU µs added", row.cell, row.variant);
            at_most(what, row.cpu_micros_added.median, max)
                .give_or_take(null.cpu_micros_added.doubt())
        };
        match (row.cell.as_str(), row.variant.as_str()) {
            (LOADED, NULL) => {
                let what = format!("{LOADED}, {NULL}, throughput");
                let ratio = known(what, row.throughput.median);
                verdicts.push(ratio.give_or_take(row.throughput.doubt()).ratio());
            }
            (SINGLE, NULL) => {
                let what = format!("{SINGLE}, {NULL}, p50");
                let p50 = known(what, row.p50.median).give_or_take(row.p50.doubt());
                verdicts.push(p50.ratio());
            }
            (LOADED, WITHOUT) => verdicts.extend([cpu(WITHOUT_MICROS_MAX), throughput(0.99)]),
            (TOGETHER, WITHOUT) => verdicts.extend([cpu(WITHOUT_MICROS_MAX), shown()]),
            (LOADED, IDLE) => verdicts.extend([cpu(IDLE_MICROS_MAX), throughput(0.97)]),
            (TOGETHER, IDLE) => verdicts.extend([cpu(IDLE_MICROS_MAX), shown()]),
            (LOADED, BREAKS_OVER_IDLE) => verdicts.push(throughput(0.99)),
            (LOADED, RECORDS) => {
                verdicts.push(throughput(0.93));
                verdicts.extend(of_cell(OTLP.name).map(|otlp| {
                    let what = format!("{LOADED}, recording's overhead over OTLP tracing's");
                    at_most(what, overhead(row) / overhead(otlp), 0.2)
                        .give_or_take(null.throughput.doubt() / overhead(otlp))
                        .ratio()
                }));
            }
            (SINGLE, IDLE) => {
                let what = format!("{SINGLE}, {IDLE}, p50");
                let p50 = at_most(what, row.p50.median, 1.03);
                verdicts.push(p50.give_or_take(null.p50.doubt()).ratio());
            }
            _ => {}
        }
    }
    verdicts
}

/// How much longer the same calls take.
fn overhead(row: &Row) -> f64 {
    1.0 / row.throughput.median - 1.0
}
