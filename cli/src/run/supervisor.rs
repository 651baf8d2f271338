//! Starts the processes of a run in order, watches them, and leaves none behind.

use std::collections::BTreeSet;
use std::io;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ddbx_protocol::ProcessName;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::RunError;
use super::alarm::Alarm;
use super::config::{Config, Process, Ready};
use super::output::{Printer, Sinks};
use batch::as_batch;
use child::{ChildNumber, Event, Watch};
use group::Group;

mod batch;
mod child;
mod group;

pub use child::Exit;

/// How often to look again where nothing tells that something has changed.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What comes before the end of the processes may take this long: it can wait for
/// somebody who never answers.
const BEFORE_TEARDOWN_MAX: Duration = Duration::from_secs(2);

/// As shells have it when a program is ended by ctrl-c.
pub const INTERRUPTED: u8 = 130;

/// How to supervise.
#[derive(Clone, Debug)]
pub struct Options {
    /// For programs: no colours.
    pub headless: bool,
    /// How long a process may take to end once it is asked to.
    pub grace: Duration,
    /// How long a process may take to get ready. A first build is slow.
    pub ready_timeout: Duration,
    /// What looks at the lines that are printed before the end of the run.
    pub alarm: Option<Arc<Alarm>>,
    /// Who is told of those that have exited, and says when it is over: otherwise it is when
    /// all have.
    pub outlast: Option<watch::Sender<BTreeSet<ProcessName>>>,
    /// Whether it does not matter which of the programs' threads runs when.
    pub is_batch: bool,
}

impl Default for Options {
    fn default() -> Self {
        let (grace, ready_timeout) = (Duration::from_secs(3), Duration::from_secs(60));
        let (alarm, outlast) = (None, None);
        Self { headless: false, grace, ready_timeout, alarm, outlast, is_batch: false }
    }
}

/// What a run asks of its surroundings.
pub struct Hooks<A, S, B> {
    /// Whether the satellite of the process of this name is in the session.
    pub is_attached: A,
    /// Makes a future that completes when the run is told to stop.
    pub stop: S,
    /// Awaited, but not for long, before anybody is asked to end.
    pub before_teardown: B,
}

/// All that is known of a run that is over.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub outcome: Result<Outcome, RunError>,
    /// Who exited before anybody was asked to, in this order. The last one ended the
    /// run, unless it was told to stop.
    pub exits: Vec<(ProcessName, Exit)>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit code to pass on.
    pub code: u8,
    /// Whether it was told to stop before it ended by itself.
    pub stopped: bool,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        outcome.code.into()
    }
}

/// Runs the processes until the run is over, and ends those that are left.
///
/// It is over when a process that `ends_run` exits, when all have exited, when
/// one fails although none `ends_run`, or when told to stop. Told once more, processes
/// are killed at once, and the third time their output is not waited for. Dropping the
/// future kills all.
///
/// Each process gets `environment`.
pub async fn supervise<S: Future<Output = ()>>(
    sinks: Sinks,
    config: &Config,
    environment: &[(String, String)],
    hooks: Hooks<impl Fn(&str) -> bool, impl FnMut() -> S, impl Future<Output = ()>>,
    options: &Options,
) -> Ended {
    let Hooks { is_attached, mut stop, before_teardown } = hooks;
    let names = config.processes.iter().flat_map(|process| &process.replicas);
    let names: Vec<_> = names.map(ProcessName::as_str).collect();
    let printer = match Printer::start(&names, sinks) {
        Ok(printer) => printer,
        Err(error) => return Ended { outcome: Err(error.into()), exits: Vec::new() },
    };
    let (events_in, events) = mpsc::unbounded_channel();
    let mut supervisor = Supervisor {
        config,
        environment,
        is_attached,
        options,
        printer,
        waiting: config.processes.iter().collect(),
        children: Vec::new(),
        exits: Vec::new(),
        tasks: JoinSet::new(),
        events,
        events_in,
    };
    let ending = supervisor.run(&mut stop).await;
    supervisor.tear_down(&mut stop, before_teardown).await;
    let outcome = ending.map(|ending| supervisor.outcome(ending));
    let exits = std::mem::take(&mut supervisor.exits);
    let printed = supervisor.finish(&mut stop).await;
    let outcome = match outcome {
        // A failure that is known says more than that it could not be printed.
        Ok(Outcome { code: 0, .. }) => printed.map_err(RunError::from).and(outcome),
        _ => outcome,
    };
    Ended { outcome, exits }
}

/// Why a run is over.
enum Ending {
    /// This code is to be passed on.
    Code(u8),
    /// It was told to stop.
    Stopped,
}

struct Supervisor<'a, A> {
    config: &'a Config,
    environment: &'a [(String, String)],
    is_attached: A,
    options: &'a Options,
    printer: Printer,
    /// Not started yet, in the order of the file.
    waiting: Vec<&'a Process>,
    /// In the order of start.
    children: Vec<Child<'a>>,
    /// By themselves, in this order.
    exits: Vec<(ProcessName, Exit)>,
    tasks: JoinSet<()>,
    events: mpsc::UnboundedReceiver<Event>,
    events_in: mpsc::UnboundedSender<Event>,
}

struct Child<'a> {
    process: &'a Process,
    name: &'a ProcessName,
    group: Arc<Group>,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    /// Started, not ready.
    Starting {
        /// When it is too late; never if `None`.
        deadline: Option<Instant>,
    },
    /// Whoever waited for it may start.
    Ready,
    /// With this code.
    Exited(u8),
}

impl Drop for Child<'_> {
    /// Whatever happens, nothing is left running: not even when the run is
    /// dropped half way, which nothing else would notice in time.
    fn drop(&mut self) {
        self.group.kill();
    }
}

impl Child<'_> {
    fn is_running(&self) -> bool {
        !matches!(self.state, State::Exited(_))
    }
}

impl<'a, A: Fn(&str) -> bool> Supervisor<'a, A> {
    async fn run<F: Future<Output = ()>>(
        &mut self,
        stop: &mut impl FnMut() -> F,
    ) -> Result<Ending, RunError> {
        let mut stopped = pin!(stop());
        loop {
            while let Some(next) = self.next_to_start() {
                let process = self.waiting.remove(next);
                for replica in 0..process.replicas.len() {
                    self.start(process, replica)?;
                }
            }
            let look = self.next_look();
            tokio::select! {
                Some(event) = self.events.recv() => {
                    if let Some(ending) = self.handle(event)? {
                        return Ok(ending);
                    }
                }
                error = self.printer.failed() => return Err(error.into()),
                () = &mut stopped => {
                    self.printer.note("told to stop".to_owned());
                    return Ok(Ending::Stopped);
                }
                () = sleep_until(look.unwrap_or_else(Instant::now)), if look.is_some() => {
                    self.look_for_the_ready_and_the_late()?;
                }
            }
        }
    }

    /// The place of the first who waits for nobody any more.
    fn next_to_start(&self) -> Option<usize> {
        let is_ready = |name: &ProcessName| {
            self.waiting.iter().all(|process| process.name() != name)
                && self
                    .children
                    .iter()
                    .filter(|child| child.process.name() == name)
                    .all(|child| !matches!(child.state, State::Starting { .. }))
        };
        self.waiting.iter().position(|process| process.after.iter().all(is_ready))
    }

    fn start(&mut self, process: &'a Process, replica: usize) -> Result<(), RunError> {
        let name = &process.replicas[replica];
        let start = || child::start(process, replica, self.environment);
        let started = if self.options.is_batch { as_batch(start) } else { start() };
        let (child, group) =
            started.map_err(|error| RunError::cannot_start(process, name, error))?;
        let number = ChildNumber(self.children.len());
        let mut names = self.config.processes.iter().flat_map(|process| &process.replicas);
        let speaker = names.position(|other| other == name).unwrap_or_default();
        let watch = Watch {
            number,
            name: name.clone(),
            alarm: self.options.alarm.clone(),
            speaker: self.printer.speaker(speaker),
            ready: if let Ready::Log(line) = &process.ready { Some(line.clone()) } else { None },
            events: self.events_in.clone(),
            grace: self.options.grace,
        };
        self.tasks.spawn(watch.run(child, group.clone()));
        if let Ready::Tcp(address) = &process.ready {
            self.tasks.spawn(child::probe(address.clone(), number, self.events_in.clone()));
        }
        let state = match process.ready {
            Ready::Started => State::Ready,
            _ => {
                State::Starting { deadline: Instant::now().checked_add(self.options.ready_timeout) }
            }
        };
        self.children.push(Child { process, name, group, state });
        self.printer.note(format!("{name} started"));
        Ok(())
    }

    /// When there may be something to see that nobody tells.
    fn next_look(&self) -> Option<Instant> {
        let starting = self.children.iter().filter_map(|child| match child.state {
            State::Starting { deadline } => Some((child, deadline)),
            _ => None,
        });
        let soon = Instant::now() + LOOK_AGAIN;
        starting
            .filter_map(|(child, deadline)| match child.process.ready {
                Ready::Attached => Some(soon),
                _ => deadline,
            })
            .min()
    }

    fn look_for_the_ready_and_the_late(&mut self) -> Result<(), RunError> {
        let now = Instant::now();
        for child in &mut self.children {
            let State::Starting { deadline } = child.state else { continue };
            let is_attached = || (self.is_attached)(child.name.as_str());
            if matches!(child.process.ready, Ready::Attached) && is_attached() {
                child.state = State::Ready;
                self.printer.note(format!("{} is ready", child.name));
            } else if deadline.is_some_and(|deadline| deadline <= now) {
                return Err(RunError::NotReady {
                    name: child.name.clone(),
                    timeout: self.options.ready_timeout,
                    awaited: child.process.ready.awaited(),
                });
            }
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Result<Option<Ending>, RunError> {
        let (number, exit) = match event {
            Event::Ready(ChildNumber(number)) => {
                let child = &mut self.children[number];
                if let State::Starting { .. } = child.state {
                    child.state = State::Ready;
                    self.printer.note(format!("{} is ready", child.name));
                }
                return Ok(None);
            }
            Event::Exited(number, exit) => (number, exit),
        };
        let before = self.exited(number, &exit);
        let child = &self.children[number.0];
        self.exits.push((child.name.clone(), exit.clone()));
        if let State::Starting { .. } = before {
            return Err(RunError::ExitedEarly {
                name: child.name.clone(),
                exit: exit.text,
                awaited: child.process.ready.awaited(),
            });
        }
        let all_exited = self.waiting.is_empty() && self.running().next().is_none();
        let failed = exit.code != 0 && !self.somebody_ends_it();
        let ends_it = match &self.options.outlast {
            Some(tell) => {
                tell.send_modify(|exited| _ = exited.insert(child.name.clone()));
                false
            }
            None => child.process.ends_run || failed,
        };
        let over = ends_it || all_exited;
        Ok(over.then_some(Ending::Code(exit.code)))
    }

    /// Notes the end of a child; gives what it was before.
    fn exited(&mut self, ChildNumber(number): ChildNumber, exit: &Exit) -> State {
        let child = &mut self.children[number];
        self.printer.note(format!("{} {}", child.name, exit.text));
        std::mem::replace(&mut child.state, State::Exited(exit.code))
    }

    /// Asks whoever still runs to end, the last started first, and kills who does
    /// not, or everybody when told to stop again.
    async fn tear_down<F: Future<Output = ()>>(
        &mut self,
        stop: &mut impl FnMut() -> F,
        before: impl Future<Output = ()>,
    ) {
        if self.running().next().is_none() {
            return;
        }
        // Whether it got done is the business of whoever wants it.
        let _ = timeout(BEFORE_TEARDOWN_MAX, before).await;
        if let Some(alarm) = &self.options.alarm {
            // What was printed so far is read before the clock is.
            sleep(LOOK_AGAIN).await;
            alarm.disarm();
        }
        self.printer.note(format!("stopping {}", self.names_of_the_running()));
        for child in self.running() {
            child.group.ask_to_end();
        }
        let grace = sleep(self.options.grace);
        let why = tokio::select! {
            () = self.all_exited() => return,
            () = grace => "did not stop in time",
            () = stop() => "told to stop again",
        };
        self.printer.note(format!("{why}: killing {}", self.names_of_the_running()));
        for child in self.running() {
            child.group.kill();
        }
        tokio::select! {
            () = self.all_exited() => {}
            () = stop() => {}
        }
    }

    async fn all_exited(&mut self) {
        while self.running().next().is_some() {
            if let Some(Event::Exited(number, exit)) = self.events.recv().await {
                self.exited(number, &exit);
            }
        }
    }

    /// The last started first.
    fn running(&self) -> impl Iterator<Item = &Child<'a>> {
        self.children.iter().rev().filter(|child| child.is_running())
    }

    fn names_of_the_running(&self) -> String {
        self.running().map(|child| child.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn outcome(&self, ending: Ending) -> Outcome {
        if let Ending::Code(code) = ending {
            return Outcome { code, stopped: false };
        }
        // Who was to decide has decided if it ended when it was asked to.
        let decided = self.children.iter().find_map(|child| match child.state {
            State::Exited(code) if child.process.ends_run => Some(code),
            _ => None,
        });
        let code = if self.somebody_ends_it() { decided.unwrap_or(INTERRUPTED) } else { 0 };
        Outcome { code, stopped: true }
    }

    fn somebody_ends_it(&self) -> bool {
        self.config.processes.iter().any(|process| process.ends_run)
    }

    /// Waits until all is printed, or until told to stop once more.
    async fn finish<F: Future<Output = ()>>(self, stop: &mut impl FnMut() -> F) -> io::Result<()> {
        // Whoever has not ended by now is given up.
        if self.running().next().is_some() {
            return Ok(());
        }
        // They speak through the printer, which ends when nobody can speak any more.
        drop(self.tasks);
        tokio::select! {
            result = self.printer.finish() => result,
            () = stop() => Ok(()),
        }
    }
}
