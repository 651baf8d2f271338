//! Whether the order of events was kept, from what was recorded.
//!
//! [`verify`] says that nothing arrives before it was sent, that numbers rise and that
//! nothing is missing. That would also hold of a debugger that lets everybody overtake
//! whoever is held. So there is a second check: a control's clock is real time less its
//! delay, and the rule lets nobody pass where somebody who is further behind may still
//! come. In the log of a process clocks therefore rise, but for what the debugger's own
//! latency allows (two events closer than twice that may change places for each hold).

use std::path::Path;
use std::time::Duration;
use std::{fmt, io};

use ddbx_protocol::{EventKind, VirtualTime};
use ddbx_recording::{Entry, Moment, Recording, verify};
use serde::Serialize;

/// How many cases are told.
const TOLD_MAX: usize = 10;

/// What was found out about the order of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Order {
    /// How many events were looked at.
    pub events: u64,
    /// How many entries are missing in the recording.
    pub missing: u64,
    /// What is wrong with the recording: an arrival without or before its departure, say.
    pub wrong: u64,
    /// How many events came after one whose clock shows more, by more than was tolerated.
    pub overtaken: u64,
    /// By how much at the most.
    pub most_ms: f64,
    /// The first cases, for people.
    pub cases: Vec<String>,
}

impl Order {
    /// Reads a recording.
    pub fn of_recording(directory: &Path, tolerated: Duration) -> io::Result<Self> {
        let recording = Recording::open(directory).map_err(io::Error::other)?;
        let verification = verify(&recording);
        let mut order = Self::default();
        for finding in verification.findings.iter().filter(|finding| finding.is_wrong()) {
            order.wrong += 1;
            order.tell(finding);
        }
        order.missing = verification.logs.iter().map(|log| log.missing).sum();
        for log in recording.logs() {
            let mut clocks = Clocks::new(tolerated);
            let mut reader = log.read().map_err(io::Error::other)?;
            while let Some(recorded) = reader.read().map_err(io::Error::other)? {
                if let Entry::Event(moment) = recorded.entry {
                    order.events += 1;
                    if let Some(by) = clocks.observe(&moment) {
                        order.overtaken += 1;
                        let process = &log.manifest().process;
                        let (number, kind) = (moment.number.0, &moment.kind);
                        order.tell(&format!("{process}:{number} ({kind}) was overtaken by {by:?}"));
                    }
                }
            }
            order.most_ms = order.most_ms.max(clocks.most.as_secs_f64() * 1e3);
        }
        Ok(order)
    }

    fn tell(&mut self, case: &impl fmt::Display) {
        if self.cases.len() < TOLD_MAX {
            self.cases.push(case.to_string());
        }
    }
}

/// The clocks of one process, one event after the other.
struct Clocks {
    tolerated: Duration,
    latest: Option<VirtualTime>,
    most: Duration,
}

impl Clocks {
    fn new(tolerated: Duration) -> Self {
        Self { tolerated, latest: None, most: Duration::ZERO }
    }

    /// By how much the clock of an event is behind that of one before it, if that is more
    /// than is tolerated.
    fn observe(&mut self, moment: &Moment) -> Option<Duration> {
        if !is_gated(&moment.kind) {
            return None;
        }
        let clock = moment.at - moment.delay;
        let behind = self.latest.map_or(Duration::ZERO, |latest| latest.since(clock));
        self.latest = self.latest.max(Some(clock));
        self.most = self.most.max(behind);
        (behind > self.tolerated).then_some(behind)
    }
}

/// Whether the rule has a say before it.
fn is_gated(kind: &EventKind) -> bool {
    !kind.is_of_connection()
        && !matches!(
            kind,
            EventKind::Cancelled { .. } | EventKind::Spawned { .. } | EventKind::Ended { .. }
        )
}
