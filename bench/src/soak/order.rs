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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ddbx_protocol::{
        CallId, CallPath, ControlId, Delay, EventId, EventNumber, MethodName, PointLabel,
        ProcessName, RealTime,
    };
    use ddbx_recording::{Keep, LogWriter, NewProcess, Options, SessionManifest, join};

    use super::*;

    const TOLERATED: Duration = Duration::from_millis(100);

    /// Something that a control does, at this time and with this delay in milliseconds.
    fn moment(number: u64, at_ms: u64, delay_ms: u64, kind: EventKind) -> Moment {
        Moment {
            number: EventNumber(number),
            at: RealTime::default() + Duration::from_millis(at_ms),
            delay: Delay::ZERO + Duration::from_millis(delay_ms),
            kind,
            payload: None,
        }
    }

    fn point(of: &str) -> EventKind {
        let (control, label) = (ControlId::new(of).unwrap(), PointLabel::new("here").unwrap());
        EventKind::Point { control, call: None, label }
    }

    /// What is found out about these logs.
    fn order(logs: BTreeMap<&str, Vec<Moment>>) -> Order {
        let dir = tempfile::tempdir().unwrap();
        let name = ddbx_protocol::SessionName::new("forged").unwrap();
        let session = SessionManifest::new(name, "2026-01-01T00:00:00Z".to_owned(), Keep::All);
        for (process, moments) in logs {
            let name = ProcessName::new(process).unwrap();
            let new = NewProcess { name: name.clone(), pid: 1, command: None };
            let files = join(dir.path(), &session, new).unwrap();
            let mut writer = LogWriter::new(files, &name, Options::default());
            let now = RealTime::default();
            moments.into_iter().for_each(|moment| writer.append(now, &Entry::Event(moment)));
            writer.close(now).unwrap();
        }
        Order::of_recording(dir.path(), TOLERATED).unwrap()
    }

    #[test]
    fn whoever_waits_for_one_that_was_held_overtakes_nobody() {
        // The first was held for 5 s; the second waited for it, and for as long.
        let kept = order(BTreeMap::from([(
            "p",
            vec![
                moment(1, 1_000, 0, point("p/a")),
                moment(2, 6_010, 5_000, point("p/a")),
                moment(3, 6_050, 5_000, point("p/b")),
                // Within the debugger's latency.
                moment(4, 6_060, 5_030, point("p/a")),
            ],
        )]));
        assert_eq!((kept.overtaken, kept.wrong, kept.events), (0, 0, 4), "{kept:?}");
        assert_eq!(kept.most_ms, 20.0);
    }

    #[test]
    fn whoever_does_not_wait_is_found_out() {
        let broken = order(BTreeMap::from([(
            "p",
            vec![
                moment(1, 1_000, 0, point("p/a")),
                // It goes on as if nobody were held, and comes four seconds too early.
                moment(2, 5_010, 0, point("p/b")),
                moment(3, 6_010, 5_000, point("p/a")),
            ],
        )]));
        assert_eq!((broken.overtaken, broken.wrong), (1, 0), "{broken:?}");
        assert_eq!(broken.most_ms, 4_000.0);
        assert!(broken.cases[0].contains("p:3"), "{broken:?}");
    }

    #[test]
    fn what_arrives_before_it_is_sent_is_found_out() {
        let call = CallId { control: ControlId::new("p/a").unwrap(), path: CallPath::root(1) };
        let method = MethodName::new("Shop.buy").unwrap();
        let sent = |call: &CallId| EventKind::CallSent {
            call: call.clone(),
            method: method.clone(),
            content: 0,
        };
        let sent_as = EventId { process: ProcessName::new("p").unwrap(), number: EventNumber(2) };
        let arrived = |sent_as| EventKind::CallArrived {
            call: call.clone(),
            method: method.clone(),
            sent_as: Some(sent_as),
        };
        let logs = |departure: EventKind| {
            let p = vec![moment(1, 1, 0, point("p/a")), moment(2, 2, 0, departure)];
            BTreeMap::from([("p", p), ("q", vec![moment(1, 3, 0, arrived(sent_as.clone()))])])
        };
        assert_eq!(order(logs(sent(&call))).wrong, 0);
        let forged = order(logs(point("p/a")));
        assert_eq!(forged.wrong, 1, "{forged:?}");
    }
}
