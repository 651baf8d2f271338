//! Two variants in turns: A, B, B, A. What drifts meanwhile is the same for both.

use std::io;

use serde::{Deserialize, Serialize};

use super::variants::{Of, Pairs};
use crate::peers::{Flavor, Lane, Measured, Method, Transport, Window};
use crate::stats::{Spread, median};

/// How long one of them has its turn.
const WINDOW_MS: u64 = 50;

/// Longer than a recorder waits before it writes: so every window has its share of that,
/// and none has that of the one before.
const LEAD_MS: u64 = 30;

/// What is called, how, and how much at a time.
#[derive(Clone, Copy)]
pub struct Cell {
    pub flavor: Flavor,
    pub transport: Transport,
    pub method: Method,
    pub outstanding: usize,
}

impl Cell {
    /// Such as `tcp/echo/64`, with tokio's default runtime, or `tcp/echo/64/current-thread`.
    pub fn name(&self) -> String {
        let Self { flavor, transport, method, outstanding } = self;
        let flavor = match flavor {
            Flavor::MultiThread => "",
            Flavor::CurrentThread => "/current-thread",
        };
        format!("{transport:?}/{method:?}/{outstanding}{flavor}").to_lowercase()
    }

    /// What is to be done with it for so long.
    pub fn window(&self, lane: Lane) -> Window {
        let Self { flavor, transport, method, outstanding } = *self;
        let (lead_ms, length_ms) = (LEAD_MS, WINDOW_MS);
        Window { flavor, lane, transport, method, outstanding, lead_ms, length_ms }
    }
}

/// A variant beside that to which it is compared.
#[derive(Clone, Copy)]
pub struct Contrast {
    pub name: &'static str,
    pub base: (Of, Lane),
    pub variant: (Of, Lane),
}

/// What the two windows of each said.
struct Round {
    base: [Measured; 2],
    variant: [Measured; 2],
}

/// What all rounds said of a variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    pub cell: String,
    pub variant: String,
    pub calls_per_second: f64,
    /// Over that of what it is compared to; so are the next two.
    pub throughput: Spread,
    pub p50: Spread,
    pub p99: Spread,
    pub p50_micros: f64,
    pub p99_micros: f64,
    /// Of all processes, per call.
    pub cpu_micros: f64,
    pub cpu_micros_added: Spread,
}

/// The rounds of a variant so far.
pub struct Rounds {
    name: &'static str,
    cell: Cell,
    rounds: Vec<Round>,
}

impl Rounds {
    pub fn new(name: &'static str, cell: Cell) -> Self {
        Self { name, cell, rounds: Vec::new() }
    }

    /// One more round.
    pub fn measure(&mut self, contrast: &Contrast, pairs: &mut Pairs) -> io::Result<()> {
        let Contrast { base, variant, .. } = *contrast;
        let mut window = |(of, lane): (Of, Lane)| {
            let pair = pairs.get_mut(&of).ok_or(io::ErrorKind::NotFound)?;
            pair.window(&self.cell.window(lane))
        };
        let [a, b, c, d] = [window(base)?, window(variant)?, window(variant)?, window(base)?];
        self.push([a, b, c, d]);
        Ok(())
    }

    /// Four windows, in the order A, B, B, A.
    pub fn push(&mut self, [a, b, c, d]: [Measured; 4]) {
        self.rounds.push(Round { base: [a, d], variant: [b, c] });
    }

    pub fn row(&self) -> Row {
        let ratio = |of: fn(&[Measured; 2]) -> f64| {
            Spread::of(self.rounds.iter().map(|round| of(&round.variant) / of(&round.base)))
        };
        let of_variant = |of: fn(&[Measured; 2]) -> f64| {
            median(self.rounds.iter().map(|round| of(&round.variant)))
        };
        let added = |round: &Round| cpu_micros(&round.variant) - cpu_micros(&round.base);
        Row {
            cell: self.cell.name(),
            variant: self.name.to_owned(),
            calls_per_second: of_variant(throughput),
            throughput: ratio(throughput),
            p50: ratio(p50_micros),
            p99: ratio(p99_micros),
            p50_micros: of_variant(p50_micros),
            p99_micros: of_variant(p99_micros),
            cpu_micros: of_variant(cpu_micros),
            cpu_micros_added: Spread::of(self.rounds.iter().map(added)),
        }
    }
}

fn throughput([one, other]: &[Measured; 2]) -> f64 {
    (one.calls + other.calls) as f64 / (one.nanos + other.nanos) as f64 * 1e9
}

fn cpu_micros([one, other]: &[Measured; 2]) -> f64 {
    (one.cpu_nanos + other.cpu_nanos) as f64 / (one.calls + other.calls) as f64 / 1e3
}

fn p50_micros([one, other]: &[Measured; 2]) -> f64 {
    f64::midpoint(one.p50_nanos as f64, other.p50_nanos as f64) / 1e3
}

fn p99_micros([one, other]: &[Measured; 2]) -> f64 {
    f64::midpoint(one.p99_nanos as f64, other.p99_nanos as f64) / 1e3
}
