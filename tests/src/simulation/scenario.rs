//! What happens to a program: a debugger, a user, and bad luck.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use ddbx_protocol::{Mode, RpcEvent, Safeguard, Safeguards, Scope};

use super::program::Nanos;

/// Everything about a run that is not the program.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// For latencies.
    pub seed: u64,
    /// How the rule is applied.
    pub mode: Mode,
    /// How long a debugger message takes.
    pub latency: RangeInclusive<Nanos>,
    /// How long a message of the program takes.
    pub network: RangeInclusive<Nanos>,
    /// All times are multiples of this, so that ties are frequent or rare.
    pub grain: Nanos,
    /// Where the user stops controls.
    pub breakpoints: Vec<BreakAt>,
    /// When the user pauses a process, and for how long.
    pub pauses: Vec<(usize, Nanos, Nanos)>,
    /// When the user lets somebody go on whatever the rule says.
    pub forces: Vec<Nanos>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// Which clause of the rule is missing.
    pub sabotage: Sabotage,
    /// When controls from outside start, where that is not as the program says.
    pub starts: BTreeMap<usize, Nanos>,
}

/// A breakpoint, and what the user does at it.
#[derive(Clone, Debug)]
pub struct BreakAt {
    /// In which process.
    pub process: usize,
    /// At which event; none for points.
    pub event: Option<RpcEvent>,
    /// Whom it stops.
    pub scope: Scope,
    /// How many are let pass.
    pub ignore: u32,
    /// Whether it stops only once.
    pub once: bool,
    /// For how long the user looks.
    pub hold: Nanos,
}

/// Something that goes wrong at a time.
#[derive(Clone, Debug)]
pub struct Fault {
    /// When.
    pub at: Nanos,
    /// What.
    pub kind: FaultKind,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A process dies.
    Crash(usize),
    /// A satellite's connection is closed; it comes back after this long.
    Cut(usize, Nanos),
    /// A satellite's connection goes dumb without being closed.
    HalfOpen(usize, Nanos),
    /// Central dies; a new one starts after this long.
    CentralCrash(Nanos),
    /// All debugger messages take this much longer for a while.
    Stall(Nanos),
}

/// At most one clause of the rule is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sabotage(pub Option<Safeguard>);

impl Safeguards for Sabotage {
    fn on(&self, safeguard: Safeguard) -> bool {
        self.0 != Some(safeguard)
    }
}

impl Scenario {
    /// The same without debugger: nothing held, nothing wrong.
    pub fn undisturbed(&self, starts: BTreeMap<usize, Nanos>) -> Self {
        Self {
            mode: Mode::Permit,
            breakpoints: Vec::new(),
            pauses: Vec::new(),
            forces: Vec::new(),
            faults: Vec::new(),
            sabotage: Sabotage::default(),
            latency: 0..=0,
            starts,
            ..self.clone()
        }
    }
}
