//! Central at work: a thread that hears satellites and the user, one after the
//! other.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use ddbx_protocol::{
    AllOn, Breakpoint, BreakpointId, Delay, Mode, ProcessIndex, ProcessName, RealTime, Scope, Spec,
    StopId, StopReason, ToCentral, ToSatellite,
};

use crate::logic::{Central, Command};

/// A running session.
#[derive(Clone)]
pub struct Session {
    inputs: Sender<Input>,
}

/// A breakpoint as the user asked for it.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Where.
    pub spec: Spec,
    /// Whom it stops.
    pub scope: Scope,
    /// How many times it is passed first.
    pub ignore: u32,
    /// Whether it stops only once.
    pub once: bool,
}

/// Somebody stands at a breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Which breakpoint.
    pub breakpoint: BreakpointId,
    /// Who.
    pub stop: StopId,
}

/// Hears of hits.
type Tell = Box<dyn Fn(Hit) + Send>;

/// Takes messages for one satellite.
pub type Deliver = Box<dyn Fn(ToSatellite) + Send>;

enum Input {
    Number(Sender<ProcessIndex>),
    Join { process: ProcessIndex, name: ProcessName, deliver: Deliver, reply: Sender<()> },
    Left(ProcessIndex),
    Satellite(ProcessIndex, ToCentral),
    Break { wanted: Wanted, hits: Tell, reply: Sender<BreakpointId> },
    Remove(BreakpointId, Sender<()>),
    User(Command),
    ContinueAll,
    Stops(Sender<Vec<(StopId, StopReason)>>),
}

impl Session {
    /// Starts a session on a thread of its own; it ends with the last handle.
    pub fn start() -> std::io::Result<Self> {
        let (inputs, heard) = channel();
        let name = "ddbx-central".to_owned();
        thread::Builder::new().name(name).spawn(move || Driver::new().run(&heard))?;
        Ok(Self { inputs })
    }

    /// A number for a process that is about to join.
    pub fn number(&self) -> Option<ProcessIndex> {
        self.ask(Input::Number)
    }

    /// A process joins. A name that is taken gets a number behind it. When this
    /// returns, all breakpoints that concern it are in force.
    pub fn join(&self, process: ProcessIndex, name: ProcessName, deliver: Deliver) {
        let _ = self.ask(|reply| Input::Join { process, name, deliver, reply });
    }

    /// A process is gone.
    pub fn leave(&self, process: ProcessIndex) {
        let _ = self.inputs.send(Input::Left(process));
    }

    /// A satellite says something.
    pub fn hear(&self, process: ProcessIndex, message: ToCentral) {
        let _ = self.inputs.send(Input::Satellite(process, message));
    }

    /// Plants a breakpoint in all processes it concerns, now and later. It is in
    /// force when this returns.
    pub fn plant(
        &self,
        wanted: Wanted,
        hits: impl Fn(Hit) + Send + 'static,
    ) -> Option<BreakpointId> {
        self.ask(|reply| Input::Break { wanted, hits: Box::new(hits), reply })
    }

    /// Removes a breakpoint everywhere: it stops nobody any more when this returns.
    pub fn remove(&self, id: BreakpointId) {
        let _ = self.ask(|reply| Input::Remove(id, reply));
    }

    /// The user says something.
    pub fn command(&self, command: Command) {
        let _ = self.inputs.send(Input::User(command));
    }

    /// Ends all holds and removes all breakpoints.
    pub fn continue_all(&self) {
        let _ = self.inputs.send(Input::ContinueAll);
    }

    /// Everybody who stands still, and why.
    pub fn stops(&self) -> Vec<(StopId, StopReason)> {
        self.ask(Input::Stops).unwrap_or_default()
    }

    fn ask<T>(&self, input: impl FnOnce(Sender<T>) -> Input) -> Option<T> {
        let (reply, answer) = channel();
        self.inputs.send(input(reply)).ok()?;
        answer.recv().ok()
    }
}

struct Driver {
    origin: Instant,
    central: Central<AllOn>,
    members: BTreeMap<ProcessIndex, (String, Deliver)>,
    next_process: u64,
    breakpoints: BTreeMap<BreakpointId, (Wanted, Tell)>,
    next_breakpoint: u32,
}

impl Driver {
    fn new() -> Self {
        Self {
            origin: Instant::now(),
            central: Central::new(Mode::Permit, AllOn),
            members: BTreeMap::new(),
            next_process: 0,
            breakpoints: BTreeMap::new(),
            next_breakpoint: 0,
        }
    }

    fn run(mut self, inputs: &Receiver<Input>) {
        loop {
            let now = self.now();
            let due = self.central.poll_timeout().map(|due| due.since(now));
            match inputs.recv_timeout(due.unwrap_or(Duration::from_secs(3_600))) {
                Ok(input) => self.handle(input),
                Err(RecvTimeoutError::Timeout) => self.central.handle_timeout(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.deliver();
        }
    }

    fn deliver(&mut self) {
        let now = self.now();
        while let Some((to, message)) = self.central.poll_output(now) {
            if let Some((_, deliver)) = self.members.get(&to) {
                deliver(message);
            }
        }
    }

    fn now(&self) -> RealTime {
        RealTime::default() + self.origin.elapsed()
    }

    fn handle(&mut self, input: Input) {
        match input {
            Input::Number(reply) => {
                let _ = reply.send(ProcessIndex(self.next_process));
                self.next_process += 1;
            }
            Input::Join { process, name, deliver, reply } => {
                let name = self.free_name(name.as_str());
                self.central.handle_joined(self.now(), process, &[], Delay::ZERO);
                for (id, (wanted, _)) in &self.breakpoints {
                    if wanted.spec.concerns(&name) {
                        let command = Command::Plant(process, wanted.planted(*id));
                        self.central.handle_user(command);
                    }
                }
                self.members.insert(process, (name, deliver));
                self.deliver();
                let _ = reply.send(());
            }
            Input::Left(process) => {
                self.members.remove(&process);
                self.central.handle_left(self.now(), process);
            }
            Input::Satellite(from, message) => {
                let hit = match &message {
                    ToCentral::Stopped { number, reason: StopReason::Breakpoint(id), .. } => {
                        Some(Hit {
                            breakpoint: *id,
                            stop: StopId { process: from, number: *number },
                        })
                    }
                    _ => None,
                };
                self.central.handle_satellite(self.now(), from, message);
                let Some(hit) = hit else { return };
                match self.breakpoints.get(&hit.breakpoint) {
                    Some((_, hits)) => hits(hit),
                    // It was removed while this one came to it: nobody waits for it.
                    None => self.central.handle_user(Command::Continue(hit.stop)),
                }
            }
            Input::Break { wanted, hits, reply } => {
                let id = BreakpointId(self.next_breakpoint);
                self.next_breakpoint += 1;
                for (process, (name, _)) in &self.members {
                    if wanted.spec.concerns(name) {
                        self.central.handle_user(Command::Plant(*process, wanted.planted(id)));
                    }
                }
                self.breakpoints.insert(id, (wanted, hits));
                self.deliver();
                let _ = reply.send(id);
            }
            Input::Remove(id, reply) => {
                self.breakpoints.remove(&id);
                self.central.handle_user(Command::Remove(id));
                self.deliver();
                let _ = reply.send(());
            }
            Input::User(command) => self.central.handle_user(command),
            Input::ContinueAll => {
                for id in std::mem::take(&mut self.breakpoints).into_keys() {
                    self.central.handle_user(Command::Remove(id));
                }
                let users = self.central.stops().filter(|(_, reason)| reason.is_users());
                for (stop, _) in users.collect::<Vec<_>>() {
                    self.central.handle_user(Command::Continue(stop));
                }
            }
            Input::Stops(reply) => {
                let _ = reply.send(self.central.stops().collect());
            }
        }
    }

    /// `inventory`, or `inventory#2` if there is one already.
    fn free_name(&self, name: &str) -> String {
        let taken = |name: &str| self.members.values().any(|(other, _)| other == name);
        let numbered = (2..).map(|number| format!("{name}#{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names.find(|name| !taken(name)).unwrap_or_default()
    }
}

impl Wanted {
    fn planted(&self, id: BreakpointId) -> Breakpoint {
        Breakpoint {
            id,
            place: self.spec.place.clone(),
            scope: self.scope,
            ignore: self.ignore,
            once: self.once,
        }
    }
}
