//! The clauses of the rule, by name.
//!
//! Every clause is there because its removal breaks something. The simulator
//! proves that by switching one off at a time; shipped code is built with
//! [`AllOn`], which cannot.

use std::fmt;

/// One clause of the rule, and what goes wrong without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Safeguard {
    /// A wait that ends is judged again; without: new holds are overlooked.
    Reevaluation,
    /// The clock travels with the control; without: one clock per process.
    ClockPerControl,
    /// Arrivals are judged when they arrive; without: only when they are sent.
    GateAtArrival,
    /// Who is ahead blocks nobody; without: anything stopped blocks (deadlocks).
    AheadBlocksNobody,
    /// Strands of one control count against each other.
    BranchesCount,
    /// Being in a process counts; without: only "may still enter".
    BeingInCounts,
    /// Timers are gated events; without: they fire on time, in real time.
    TimersGated,
    /// Timers that wait count as clients.
    TimersCount,
    /// Departures are gated events.
    DeparturesGated,
    /// A join takes the latest clock; without: the greatest delay.
    JoinTakesLatestClock,
    /// A process hold charges from the moment of each stop; without: from its
    /// beginning.
    HoldChargesFromStop,
    /// Who waits inside a process is followed into what it may enter next.
    InsideFollowed,
    /// The clock runs while waiting inside; without: it stands (deadlocks).
    InsideClockRuns,
    /// Debugger latency is not charged; without: delays creep.
    LatencyNotCharged,
    /// Ties are released together; without: one at a time.
    TiesTogether,
    /// Delays survive the loss of central; without: clocks snap to real time.
    DelaysKeptOnLoss,
    /// Who comes late takes over the delays it meets; without: starts at zero.
    LateJoinerTakesDelay,
}

impl Safeguard {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Reevaluation,
        Self::ClockPerControl,
        Self::GateAtArrival,
        Self::AheadBlocksNobody,
        Self::BranchesCount,
        Self::BeingInCounts,
        Self::TimersGated,
        Self::TimersCount,
        Self::DeparturesGated,
        Self::JoinTakesLatestClock,
        Self::HoldChargesFromStop,
        Self::InsideFollowed,
        Self::InsideClockRuns,
        Self::LatencyNotCharged,
        Self::TiesTogether,
        Self::DelaysKeptOnLoss,
        Self::LateJoinerTakesDelay,
    ];
}

impl fmt::Display for Safeguard {
    /// The name of its removal, as the simulator takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reevaluation => "no-reevaluation",
            Self::ClockPerControl => "clock-per-process",
            Self::GateAtArrival => "gate-at-sender",
            Self::AheadBlocksNobody => "anything-held-blocks",
            Self::BranchesCount => "branches-do-not-count",
            Self::BeingInCounts => "being-in-does-not-count",
            Self::TimersGated => "timers-not-gated",
            Self::TimersCount => "timers-do-not-count",
            Self::DeparturesGated => "departures-not-gated",
            Self::JoinTakesLatestClock => "join-takes-greatest-delay",
            Self::HoldChargesFromStop => "hold-charges-from-start",
            Self::InsideFollowed => "inside-not-followed",
            Self::InsideClockRuns => "inside-clock-stands",
            Self::LatencyNotCharged => "latency-charged",
            Self::TiesTogether => "ties-one-by-one",
            Self::DelaysKeptOnLoss => "delays-reset-on-loss",
            Self::LateJoinerTakesDelay => "late-joiner-at-zero",
        })
    }
}

/// Which clauses are in force.
pub trait Safeguards: Clone {
    /// Whether this one is.
    fn on(&self, safeguard: Safeguard) -> bool;
}

/// All of them: the only choice outside the simulator, and free.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllOn;

impl Safeguards for AllOn {
    #[inline(always)]
    fn on(&self, _: Safeguard) -> bool {
        true
    }
}
