//! A whole session in which messages take no time, for cases written by hand.

use std::time::Duration;

use ddbx_central::logic::{Central, Command};
use ddbx_protocol::Gate;
use ddbx_protocol::{
    AllOn, Breakpoint, BreakpointId, Delay, Mode, Pattern, Place, PointLabel, ProcessIndex,
    RealTime, Scope, Stack, StopId,
};
use ddbx_satellite::logic::strand::{Strand, StrandId};
use ddbx_satellite::logic::{Output, Satellite, Verdict};

pub const MS: Duration = Duration::from_millis(1);

pub fn stop(process: u64, number: u64) -> StopId {
    StopId { process: ProcessIndex(process), number }
}

/// Central, satellites, and whom they have let go.
pub struct Session {
    pub central: Central,
    pub satellites: Vec<Satellite>,
    pub now: RealTime,
    pub resumed: Vec<(StrandId, Delay)>,
}

impl Session {
    pub fn new(processes: usize, connections: &[(u64, u64)]) -> Self {
        let mut central = Central::new(Mode::Permit, AllOn);
        let mut satellites = Vec::new();
        for process in (0..processes as u64).map(ProcessIndex) {
            let callees: Vec<_> = connections
                .iter()
                .filter(|(from, _)| *from == process.0)
                .map(|(_, to)| ProcessIndex(*to))
                .collect();
            central.handle_joined(RealTime::default(), process, &callees, Delay::ZERO);
            let mut satellite = Satellite::new(process, Mode::Permit, AllOn);
            satellite.handle_attached(RealTime::default());
            satellites.push(satellite);
        }
        Self { central, satellites, now: RealTime::default(), resumed: Vec::new() }
    }

    pub fn settle(&mut self) {
        loop {
            let mut quiet = true;
            for process in 0..self.satellites.len() {
                while let Some(output) = self.satellites[process].poll_output() {
                    quiet = false;
                    match output {
                        Output::Send(message) => self.central.handle_satellite(
                            self.now,
                            ProcessIndex(process as u64),
                            message,
                        ),
                        Output::Resume { strand, delay, .. } => self.resumed.push((strand, delay)),
                    }
                }
            }
            while let Some((to, message)) = self.central.poll_output(self.now) {
                quiet = false;
                self.satellites[to.0 as usize].handle_central(self.now, message);
            }
            if quiet {
                return;
            }
        }
    }

    pub fn event(&mut self, process: usize, strand: u64, home: u64) -> Verdict {
        let stack = match home == process as u64 {
            true => Stack::home(ProcessIndex(home)),
            false => Stack::home(ProcessIndex(home)).call(ProcessIndex(process as u64)),
        };
        let strand = Strand::new(StrandId(strand), stack, Delay::ZERO);
        let gate = Gate::Point(PointLabel::new("here").unwrap());
        let verdict = self.satellites[process].handle_event(self.now, &strand, &gate);
        self.settle();
        verdict
    }

    pub fn later(&mut self, length: Duration) {
        self.now = self.now + length;
        for satellite in &mut self.satellites {
            satellite.handle_timeout(self.now);
        }
        self.settle();
    }

    pub fn break_once(&mut self, process: u64) {
        let breakpoint = Breakpoint {
            condition: None,
            id: BreakpointId(7),
            place: Place::Point { label: Pattern::from("*") },
            scope: Scope::Call,
            ignore: 0,
            once: true,
        };
        self.central.handle_user(Command::Plant(ProcessIndex(process), breakpoint));
        self.settle();
    }
}
