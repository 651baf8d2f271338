//! The debugger's own connections, the user, and what goes wrong with them.

use std::time::Duration;

use ddbx_central::logic::{Central, Command};
use ddbx_protocol::session::LEASE;
use ddbx_protocol::{
    Breakpoint, BreakpointId, Delay, Pattern, Place, ProcessIndex, RealTime, StopReason, ToCentral,
    ToSatellite,
};
use ddbx_satellite::logic::Output;

use super::program::Nanos;
use super::scenario::{FaultKind, Sabotage, Scenario};
use super::world::{Event, World};

/// Central and the connections to it.
pub(super) struct Debugger {
    /// None while it is down.
    central: Option<Central<Sabotage>>,
    links: Vec<Link>,
    rng: fastrand::Rng,
    central_timer: Option<RealTime>,
    /// Messages take this much longer until then.
    stall: (Nanos, RealTime),
    has_begun: bool,
}

/// The connection between a satellite and central.
#[derive(Clone, Default)]
struct Link {
    /// Messages of an earlier connection are lost.
    epoch: u64,
    is_up: bool,
    /// Not closed, but nothing gets through.
    is_dumb: bool,
    last_to_central: RealTime,
    last_to_satellite: RealTime,
}

/// Something that drivers do.
pub(super) enum Duty {
    /// The user says something to central.
    User(Command),
    /// The user lets somebody go whom the rule makes wait.
    Force,
    /// Something goes wrong.
    Fault(usize),
    /// A satellite notices that central is gone.
    SatelliteLost(usize),
    /// Central notices that a satellite is gone.
    CentralLost(usize),
    /// A satellite dials.
    Dial(usize),
    /// Central hears a satellite's hello.
    Hello(usize, u64, Delay),
    /// The satellite hears central's answer.
    Welcome(usize, u64),
    /// Central starts anew.
    CentralBack,
    /// A process starts late.
    Join(usize),
}

impl Debugger {
    pub(super) fn new(processes: usize, scenario: &Scenario) -> Self {
        Self {
            central: Some(Central::new(scenario.mode, scenario.sabotage)),
            links: vec![Link { is_up: true, ..Link::default() }; processes],
            rng: fastrand::Rng::with_seed(scenario.seed ^ 0x00de_b066),
            central_timer: None,
            stall: (0, RealTime::default()),
            has_begun: false,
        }
    }
}

impl World<'_> {
    /// Everybody attaches before the program starts; what is said then is not
    /// counted and takes no time.
    pub(super) fn begin_session(&mut self) {
        for (from, to) in self.program.connections() {
            if !self.program.connects_late {
                self.processes[from].connected.insert(to);
            }
        }
        for process in 0..self.processes.len() {
            if let Some(at) = self.program.processes[process].joins_at {
                self.debugger.links[process].is_up = false;
                self.at(nanos(at), Event::Debugger(Duty::Join(process)));
                continue;
            }
            let callees = self.callees(process);
            if let Some(central) = &mut self.debugger.central {
                central.handle_joined(self.now, index(process), &callees, Delay::ZERO);
            }
            self.processes[process].satellite.handle_attached(self.now);
        }
        self.plant();
        while let Some((to, message)) =
            self.debugger.central.as_mut().and_then(|central| central.poll_output(self.now))
        {
            self.processes[to.0 as usize].satellite.handle_central(self.now, message);
        }
        self.debugger.has_begun = true;
        for &(process, from, length) in &self.scenario.pauses {
            for (at, pause) in [(from, true), (from + length, false)] {
                let command = Command::Pause(index(process), pause);
                self.at(nanos(at), Event::Debugger(Duty::User(command)));
            }
        }
        for &at in &self.scenario.forces {
            self.at(nanos(at), Event::Debugger(Duty::Force));
        }
        for (number, fault) in self.scenario.faults.iter().enumerate() {
            self.at(nanos(fault.at), Event::Debugger(Duty::Fault(number)));
        }
    }

    fn plant(&mut self) {
        let Some(central) = &mut self.debugger.central else {
            return;
        };
        for (number, at) in self.scenario.breakpoints.iter().enumerate() {
            let place = match at.event {
                Some(event) => Place::Rpc { event: Some(event), method: Pattern::from("*") },
                None => Place::Point { label: Pattern::from("*") },
            };
            let breakpoint = Breakpoint {
                condition: None,
                id: BreakpointId(number as u32),
                place,
                scope: at.scope,
                ignore: at.ignore,
                once: at.once,
            };
            central.handle_user(Command::Plant(index(at.process), breakpoint));
        }
    }

    fn callees(&self, process: usize) -> Vec<ProcessIndex> {
        self.processes[process].connected.iter().map(|callee| index(*callee)).collect()
    }

    /// Takes what a satellite has to say.
    pub(super) fn drain(&mut self, process: usize) {
        while let Some(output) = self.processes[process].satellite.poll_output() {
            match output {
                Output::Send(message) => self.send_to_central(process, message),
                Output::Resume { strand, delay, .. } => {
                    self.after(0, Event::Resume(process, strand.0, delay));
                }
            }
        }
        let due = self.processes[process].satellite.poll_timeout();
        if let Some(due) = due
            && self.processes[process].timer_set.is_none_or(|set| due < set)
        {
            self.processes[process].timer_set = Some(due);
            self.at(due, Event::SatelliteTimer(process));
        }
    }

    fn drain_central(&mut self) {
        while let Some((to, message)) =
            self.debugger.central.as_mut().and_then(|central| central.poll_output(self.now))
        {
            self.send_to_satellite(to.0 as usize, message);
        }
        let due = self.debugger.central.as_ref().and_then(Central::poll_timeout);
        if let Some(due) = due
            && self.debugger.central_timer.is_none_or(|set| due < set)
        {
            self.debugger.central_timer = Some(due);
            self.at(due, Event::CentralTimer);
        }
    }

    pub(super) fn central_timer(&mut self) {
        self.debugger.central_timer = None;
        if let Some(central) = &mut self.debugger.central {
            central.handle_timeout();
            self.drain_central();
        }
    }

    fn send_to_central(&mut self, from: usize, message: ToCentral) {
        self.count(kind_to_central(&message), from);
        let at = self.now + self.debugger_latency();
        let link = &mut self.debugger.links[from];
        if link.is_up && !link.is_dumb {
            link.last_to_central = link.last_to_central.max(at);
            let (at, epoch) = (link.last_to_central, link.epoch);
            self.at(at, Event::ToCentral(from, epoch, message));
        }
    }

    fn send_to_satellite(&mut self, to: usize, message: ToSatellite) {
        self.count(kind_to_satellite(&message), to);
        let at = self.now + self.debugger_latency();
        let link = &mut self.debugger.links[to];
        if link.is_up && !link.is_dumb {
            link.last_to_satellite = link.last_to_satellite.max(at);
            let (at, epoch) = (link.last_to_satellite, link.epoch);
            self.at(at, Event::ToSatellite(to, epoch, message));
        }
    }

    fn count(&mut self, kind: &'static str, process: usize) {
        if self.debugger.has_begun {
            *self.trace.messages.entry(kind).or_default() += 1;
            *self.trace.messages_by_process.entry(process).or_default() += 1;
        }
    }

    fn debugger_latency(&mut self) -> Duration {
        let (extra, until) = self.debugger.stall;
        let extra = if self.now < until { extra } else { 0 };
        let latency = self.debugger.rng.u64(self.scenario.latency.clone());
        Duration::from_nanos(latency + extra)
    }

    pub(super) fn central_hears(&mut self, from: usize, epoch: u64, message: ToCentral) {
        if self.debugger.links[from].epoch != epoch {
            return;
        }
        let Some(central) = &mut self.debugger.central else {
            return;
        };
        let hit = match &message {
            ToCentral::Stopped { number, reason: StopReason::Breakpoint(id), .. } => {
                Some((*number, *id))
            }
            _ => None,
        };
        central.handle_satellite(self.now, index(from), message);
        // The user sees the hold, looks for a while, and lets it go on.
        if let Some((number, id)) = hit
            && let Some(at) = self.scenario.breakpoints.get(id.0 as usize)
        {
            self.trace.holds += 1;
            self.trace.holds_at.push(self.now);
            let stop = ddbx_protocol::StopId { process: index(from), number };
            self.after(at.hold, Event::Debugger(Duty::User(Command::Continue(stop))));
        }
        self.drain_central();
    }

    pub(super) fn satellite_hears(&mut self, to: usize, epoch: u64, message: ToSatellite) {
        if self.debugger.links[to].epoch == epoch && self.processes[to].is_alive {
            self.processes[to].satellite.handle_central(self.now, message);
            self.drain(to);
        }
    }

    pub(super) fn do_duty(&mut self, duty: Duty) {
        match duty {
            Duty::User(command) => {
                if matches!(command, Command::Pause(_, true)) {
                    self.trace.holds_at.push(self.now);
                }
                if let Some(central) = &mut self.debugger.central {
                    central.handle_user(command);
                    self.drain_central();
                }
            }
            Duty::Force => {
                let Some(central) = &mut self.debugger.central else { return };
                let waits = |(_, reason): &(_, StopReason)| *reason == StopReason::Delay;
                let waiting = central.stops().find(waits);
                if let Some((stop, _)) = waiting {
                    central.handle_user(Command::Force(stop));
                    assert!(!central.is_order_guaranteed());
                    self.drain_central();
                }
            }
            Duty::Fault(number) => self.fault(number),
            Duty::SatelliteLost(process) => {
                if self.processes[process].is_alive {
                    self.processes[process].satellite.handle_lost(self.now);
                    self.drain(process);
                }
            }
            Duty::CentralLost(process) => {
                if let Some(central) = &mut self.debugger.central {
                    central.handle_left(self.now, index(process));
                    self.drain_central();
                }
            }
            Duty::Join(process) | Duty::Dial(process) => self.dial(process),
            Duty::Hello(process, epoch, floor) => {
                if self.debugger.links[process].epoch == epoch {
                    let callees = self.callees(process);
                    if let Some(central) = &mut self.debugger.central {
                        central.handle_joined(self.now, index(process), &callees, floor);
                        let at = self.now + self.debugger_latency();
                        let link = &mut self.debugger.links[process];
                        link.last_to_satellite = link.last_to_satellite.max(at);
                        let at = link.last_to_satellite;
                        self.at(at, Event::Debugger(Duty::Welcome(process, epoch)));
                        self.drain_central();
                    }
                }
            }
            Duty::Welcome(process, epoch) => {
                if self.debugger.links[process].epoch == epoch && self.processes[process].is_alive {
                    self.processes[process].satellite.handle_attached(self.now);
                    self.drain(process);
                }
            }
            Duty::CentralBack => {
                self.debugger.central =
                    Some(Central::new(self.scenario.mode, self.scenario.sabotage));
            }
        }
    }

    /// A satellite dials central; if nobody answers, again a little later.
    fn dial(&mut self, process: usize) {
        if !self.processes[process].is_alive {
            return;
        }
        if self.debugger.central.is_none() {
            self.after(100_000_000, Event::Debugger(Duty::Dial(process)));
            return;
        }
        let link = &mut self.debugger.links[process];
        (link.is_up, link.is_dumb) = (true, false);
        link.epoch += 1;
        let epoch = link.epoch;
        let floor = self.processes[process].satellite.floor();
        let at = self.now + self.debugger_latency();
        let link = &mut self.debugger.links[process];
        link.last_to_central = link.last_to_central.max(at);
        let at = link.last_to_central;
        self.at(at, Event::Debugger(Duty::Hello(process, epoch, floor)));
    }

    fn fault(&mut self, number: usize) {
        let kind = self.scenario.faults[number].kind.clone();
        self.trace.faults_at.push(self.now);
        match kind {
            FaultKind::Crash(process) => {
                if self.processes[process].is_alive {
                    self.crash(process);
                    self.hang_up(process);
                    self.after(0, Event::Debugger(Duty::CentralLost(process)));
                }
            }
            FaultKind::Cut(process, back) => {
                if self.debugger.links[process].is_up {
                    self.hang_up(process);
                    let (here, there) = (self.debugger_latency(), self.debugger_latency());
                    let now = self.now;
                    self.at(now + here, Event::Debugger(Duty::SatelliteLost(process)));
                    self.at(now + there, Event::Debugger(Duty::CentralLost(process)));
                    let back = Duration::from_nanos(back) + here.max(there);
                    self.at(now + back, Event::Debugger(Duty::Dial(process)));
                }
            }
            FaultKind::HalfOpen(process, back) => {
                if self.debugger.links[process].is_up {
                    self.debugger.links[process].is_dumb = true;
                    let noticed = self.now + LEASE;
                    self.at(noticed, Event::Debugger(Duty::SatelliteLost(process)));
                    self.at(noticed, Event::Debugger(Duty::CentralLost(process)));
                    let back = Duration::from_nanos(back + 1);
                    self.at(noticed + back, Event::Debugger(Duty::Dial(process)));
                }
            }
            FaultKind::CentralCrash(down) => {
                if self.debugger.central.take().is_some() {
                    self.debugger.central_timer = None;
                    for process in 0..self.processes.len() {
                        if self.debugger.links[process].is_up {
                            self.hang_up(process);
                            let at = self.now + self.debugger_latency();
                            self.at(at, Event::Debugger(Duty::SatelliteLost(process)));
                            let back = self.debugger.rng.u64(0..50_000_000);
                            let back = Duration::from_nanos(down + 1_000_000 + back);
                            self.at(self.now + back, Event::Debugger(Duty::Dial(process)));
                        }
                    }
                    self.after(down, Event::Debugger(Duty::CentralBack));
                }
            }
            FaultKind::Stall(extra) => {
                self.debugger.stall = (extra, self.now + Duration::from_nanos(2 * extra));
            }
        }
    }

    fn hang_up(&mut self, process: usize) {
        let link = &mut self.debugger.links[process];
        link.epoch += 1;
        link.is_up = false;
    }
}

fn index(process: usize) -> ProcessIndex {
    ProcessIndex(process as u64)
}

fn nanos(at: Nanos) -> RealTime {
    RealTime::from_nanos(at as i64)
}

fn kind_to_central(message: &ToCentral) -> &'static str {
    match message {
        ToCentral::Stopped { reason, .. } if reason.is_users() => "hold",
        ToCentral::Stopped { reason: StopReason::Inside, .. } => "inside",
        ToCentral::Stopped { .. } => "wait",
        ToCentral::Gone { .. } => "gone",
        ToCentral::Raised { .. } => "raised",
        ToCentral::Connected { .. } | ToCentral::Accepted { .. } => "connected",
        ToCentral::Ask { .. } => "ask",
    }
}

fn kind_to_satellite(message: &ToSatellite) -> &'static str {
    match message {
        ToSatellite::Permit(permit) if permit.open.is_some() => "block",
        ToSatellite::Permit(_) => "unblock",
        ToSatellite::Vanished { .. } => "vanished",
        ToSatellite::Continue { .. } | ToSatellite::Force { .. } | ToSatellite::Pass { .. } => {
            "continue"
        }
        ToSatellite::Pause(_) => "pause",
        ToSatellite::Plant(_) | ToSatellite::Remove(_) => "breakpoint",
        ToSatellite::Granted { .. } => "granted",
    }
}
