//! Central at work: a thread that hears satellites and the user, one after the
//! other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use ddbx_protocol::control::{BreakpointView, Notice, Reply, Request, Wanted};
use ddbx_protocol::{
    AllOn, Attach, BreakpointId, ControlId, FromCentral, FromSatellite, HoldId, InFlight, Mode,
    ProcessIndex, ProcessName, Progress, RealTime, Stack, StopId, StopReason,
};
use tokio::sync::{broadcast, oneshot};

mod asked;
mod backlog;
mod breakpoints;
mod holds;
mod log;
mod members;
mod view;

use crate::logic::{Central, Command};
use asked::Asked;
use holds::Holds;
use log::{Kept, Log};
use members::Member;

pub use asked::{CheckedWish, Refused};
pub(crate) use backlog::Backlog;
pub(crate) use view::millis;

/// A running session. It ends with the last handle.
#[derive(Clone)]
pub struct Session {
    inputs: Sender<Input>,
    backlog: Arc<Backlog>,
    notices: broadcast::WeakSender<Notice>,
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

/// Takes messages for one satellite. It must only hand them on.
pub type Deliver = Box<dyn Fn(FromCentral) + Send>;

/// A process's part in a session, from one joining to the next loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    process: ProcessIndex,
    epoch: u64,
}

/// A process that was asked something, its name, and its answer.
pub(crate) type Questioned = (ProcessIndex, String, oneshot::Receiver<Vec<InFlight>>);

/// Which calls stand, by process, control and how many processes wait for them: the hold,
/// and for how long.
pub(crate) type StandingCalls = BTreeMap<(ProcessIndex, ControlId, u32), (HoldId, Duration)>;

enum Input {
    Join {
        attach: Attach,
        deliver: Deliver,
        reply: Sender<Option<Membership>>,
    },
    Left(Membership),
    Satellite(Membership, FromSatellite),
    Break {
        wish: CheckedWish,
        hits: Option<Tell>,
        /// None if there are too many.
        reply: Sender<Option<BreakpointView>>,
    },
    Remove(BreakpointId, Sender<()>),
    /// Another one in the place of a breakpoint; none is told if there is no such one.
    Change(BreakpointId, CheckedWish, Sender<Option<BreakpointView>>),
    User(Command),
    ContinueAll,
    /// Nobody shall wait for those who stand at this breakpoint.
    Usher(BreakpointId),
    /// The user ends the pause of a process, and nothing else.
    EndPause(String),
    Stops(Sender<Vec<(StopId, StopReason)>>),
    StopsSoFar(Sender<u64>),
    Request(Request, Sender<Reply>),
    /// Where a hold stands, by process and by name.
    Where(HoldId, Sender<Option<Vec<(ProcessIndex, String)>>>),
    /// The calls of a control in a process.
    Calls(ProcessIndex, ControlId, oneshot::Sender<Vec<InFlight>>),
    /// A question to all processes; tells when each has answered.
    AskAll(fn(u64) -> FromCentral, Sender<Vec<Questioned>>),
    /// Where calls stand.
    Standing(Sender<StandingCalls>),
    /// What has happened so far, and what happens from now on.
    Kept(Sender<Kept>),
    /// Somebody begins to look at events, or ends that.
    Observe(bool),
}

impl Session {
    /// Starts a session in a thread of its own.
    pub fn start() -> std::io::Result<Self> {
        Self::start_in(Mode::Permit)
    }

    /// The same, in which the rule is applied in this way.
    pub fn start_in(mode: Mode) -> std::io::Result<Self> {
        let (inputs, heard) = channel();
        let (driver, notices) = Driver::new(mode);
        let backlog = driver.backlog.clone();
        let name = "ddbx-central".to_owned();
        thread::Builder::new().name(name).spawn(move || driver.run(&heard))?;
        Ok(Self { inputs, backlog, notices })
    }

    /// A process joins. A name that is taken gets a number behind it. When this
    /// returns, all breakpoints that concern it are in force. None if the session has
    /// ended, or if another process takes part under the same number.
    pub fn join(&self, attach: Attach, deliver: Deliver) -> Option<Membership> {
        self.ask(|reply| Input::Join { attach, deliver, reply }).flatten()
    }

    /// A process is gone.
    pub fn leave(&self, membership: Membership) {
        let _ = self.inputs.send(Input::Left(membership));
    }

    /// A satellite says something. Of events there can be more than anybody can be told:
    /// if the session has fallen behind, they are counted and forgotten.
    pub fn hear(&self, membership: Membership, message: FromSatellite) {
        if self.backlog.enter(&message) {
            let _ = self.inputs.send(Input::Satellite(membership, message));
        }
    }

    /// What there is to be heard, and what there was no room for.
    pub(crate) fn backlog(&self) -> &Arc<Backlog> {
        &self.backlog
    }

    /// Plants a breakpoint in all processes it concerns, now and later. It is in
    /// force when this returns.
    pub fn plant(
        &self,
        wanted: Wanted,
        hits: Option<Box<dyn Fn(Hit) + Send>>,
    ) -> Result<BreakpointView, Refused> {
        let wish = CheckedWish::new(wanted)?;
        let set = self.ask(|reply| Input::Break { wish, hits, reply });
        set.ok_or(Refused::NoSession)?.ok_or(Refused::TooMany)
    }

    /// Makes another of a breakpoint: that is in force when this returns.
    fn change(&self, id: BreakpointId, wanted: Wanted) -> Result<BreakpointView, Refused> {
        let wish = CheckedWish::new(wanted)?;
        let changed = self.ask(|reply| Input::Change(id, wish, reply));
        changed.ok_or(Refused::NoSession)?.ok_or(Refused::Unknown(id))
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

    /// Lets whoever waits for those who stand at this breakpoint pass the gate where
    /// it waits, so that others can come to the breakpoint too. Deadlines wait on.
    pub fn usher(&self, to: BreakpointId) {
        let _ = self.inputs.send(Input::Usher(to));
    }

    /// Ends the pause of a process. Who is held at a breakpoint there stays.
    pub fn end_pause(&self, process: &str) {
        let _ = self.inputs.send(Input::EndPause(process.to_owned()));
    }

    /// Everybody who stands still, and why.
    pub fn stops(&self) -> Vec<(StopId, StopReason)> {
        self.ask(Input::Stops).unwrap_or_default()
    }

    /// How many have stood still so far, those of now included.
    pub fn stops_so_far(&self) -> u64 {
        self.ask(Input::StopsSoFar).unwrap_or_default()
    }

    /// Answers what can be answered at once.
    pub fn request(&self, request: Request) -> Option<Reply> {
        // A condition is checked before anybody else has to wait for that.
        let checked = match request {
            Request::Break(wanted) => self.plant(wanted, None),
            Request::Change { breakpoint, wanted } => self.change(breakpoint, wanted),
            request => return self.ask(|reply| Input::Request(request, reply)),
        };
        match checked {
            Ok(view) => Some(Reply::Breakpoint(view)),
            Err(Refused::NoSession) => None,
            Err(refused) => Some(Reply::Refused(refused.to_string())),
        }
    }

    /// The processes through which a hold came to where it stands, outermost first.
    pub(crate) fn way_of(&self, hold: HoldId) -> Option<Vec<(ProcessIndex, String)>> {
        self.ask(|reply| Input::Where(hold, reply)).flatten()
    }

    /// The calls of a control that are in a process, once it answers.
    pub(crate) fn calls_of(
        &self,
        control: &ControlId,
        process: ProcessIndex,
    ) -> oneshot::Receiver<Vec<InFlight>> {
        let (reply, answer) = oneshot::channel();
        let _ = self.inputs.send(Input::Calls(process, control.clone(), reply));
        answer
    }

    /// All calls that are in any process, once it answers.
    pub(crate) fn calls(&self) -> Option<Vec<Questioned>> {
        self.ask(|reply| Input::AskAll(|query| FromCentral::Calls { query, of: None }, reply))
    }

    /// Which calls stand.
    pub(crate) fn standing_calls(&self) -> StandingCalls {
        self.ask(Input::Standing).unwrap_or_default()
    }

    /// Waits until all that was said so far is in force in all processes: over a
    /// connection it takes a moment to get there.
    pub(crate) async fn settled(&self) {
        self.answered(|query| FromCentral::Settle { query }).await;
    }

    /// The run is over: waits until all that has happened is on the disk, as far as it is
    /// recorded. What happens from now on is not recorded.
    pub async fn finished(&self) {
        self.answered(|query| FromCentral::Finish { query }).await;
        self.answered(|query| FromCentral::GoOn { query }).await;
    }

    /// Asks all processes something, and waits until they have answered or are gone.
    async fn answered(&self, question: fn(u64) -> FromCentral) {
        for (.., answered) in self.ask(|reply| Input::AskAll(question, reply)).unwrap_or_default() {
            // There is nothing to say: it is dropped when it is known.
            let _ = answered.await;
        }
    }

    /// Hears what happens from now on.
    pub fn subscribe(&self) -> Option<broadcast::Receiver<Notice>> {
        self.notices.upgrade().map(|notices| notices.subscribe())
    }

    /// The last of what has happened so far, and what happens from now on: nothing is in
    /// both.
    pub(crate) fn kept(&self) -> Option<Kept> {
        self.ask(Input::Kept)
    }

    /// Has the events of the program sent too, as long as the guard lives.
    pub fn observe(&self) -> Observing {
        let _ = self.inputs.send(Input::Observe(true));
        Observing(self.clone())
    }

    fn ask<T>(&self, input: impl FnOnce(Sender<T>) -> Input) -> Option<T> {
        let (reply, answer) = channel();
        self.inputs.send(input(reply)).ok()?;
        answer.recv().ok()
    }
}

/// Somebody looks at events.
pub struct Observing(Session);

impl Drop for Observing {
    fn drop(&mut self) {
        let _ = self.0.inputs.send(Input::Observe(false));
    }
}

struct Driver {
    origin: Instant,
    mode: Mode,
    central: Central<AllOn>,
    members: BTreeMap<ProcessIndex, Member>,
    /// Those who have left, until somebody takes their name.
    departed: BTreeMap<String, u32>,
    /// How many of each name have come, and who came last.
    starts: BTreeMap<ProcessName, (u32, Option<ProcessIndex>)>,
    /// How far each has come in a replay, by name and start.
    replays: BTreeMap<(ProcessName, u32), Progress>,
    epochs: u64,
    asked: Asked,
    holds: Holds,
    log: Log,
    /// Who was asked what, and whom to tell the answer.
    queries: BTreeMap<(ProcessIndex, u64), oneshot::Sender<Vec<InFlight>>>,
    next_query: u64,
    observers: usize,
    messages_sent: u64,
    /// How many have left.
    left: u64,
    /// How many were let go because too many stood.
    stops_dropped: u64,
    backlog: Arc<Backlog>,
}

impl Driver {
    fn new(mode: Mode) -> (Self, broadcast::WeakSender<Notice>) {
        let (log, notices) = Log::new();
        let driver = Self {
            origin: Instant::now(),
            mode,
            central: Central::new(mode, AllOn),
            members: BTreeMap::new(),
            departed: BTreeMap::new(),
            starts: BTreeMap::new(),
            replays: BTreeMap::new(),
            epochs: 0,
            asked: Asked::default(),
            holds: Holds::default(),
            log,
            queries: BTreeMap::new(),
            next_query: 0,
            observers: 0,
            messages_sent: 0,
            left: 0,
            stops_dropped: 0,
            backlog: Arc::default(),
        };
        (driver, notices)
    }

    fn run(mut self, inputs: &Receiver<Input>) {
        loop {
            let now = self.now();
            let due = self.central.poll_timeout().into_iter().chain(self.holds.next_expiry()).min();
            let wait = due.map_or(Duration::from_secs(3_600), |due| due.since(now));
            match inputs.recv_timeout(wait) {
                Ok(input) => self.handle(input),
                Err(RecvTimeoutError::Timeout) => self.central.handle_timeout(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            for stop in self.holds.expired(self.now()) {
                self.central.handle_user(Command::Continue(stop));
            }
            self.deliver();
        }
    }

    fn deliver(&mut self) {
        let now = self.now();
        while let Some((to, message)) = self.central.poll_output(now) {
            if let Some(member) = self.members.get(&to) {
                self.messages_sent += 1;
                (member.deliver)(FromCentral::Says(message));
            }
        }
    }

    fn now(&self) -> RealTime {
        RealTime::default() + self.origin.elapsed()
    }

    fn handle(&mut self, input: Input) {
        match input {
            Input::Join { attach, deliver, reply } => {
                let _ = reply.send(self.join(attach, deliver));
            }
            Input::Left(membership) => self.leave(membership),
            Input::Satellite(from, message) => {
                self.backlog.leave();
                self.hear(from, message);
            }
            Input::Break { wish, hits, reply } => {
                let _ = reply.send(self.set(wish, hits));
            }
            Input::Remove(id, reply) => {
                self.delete(id);
                self.deliver();
                let _ = reply.send(());
            }
            Input::Change(id, wish, reply) => {
                let _ = reply.send(self.change(id, wish));
            }
            Input::User(command) => self.central.handle_user(command),
            Input::ContinueAll => {
                for id in self.asked.ids() {
                    self.delete(id);
                }
                self.continue_everybody();
            }
            Input::Usher(to) => self.usher(to),
            Input::EndPause(process) => {
                let _ = self.pause(Some(&process), false);
            }
            Input::Stops(reply) => {
                let _ = reply.send(self.central.stops().collect());
            }
            Input::StopsSoFar(reply) => {
                let _ = reply.send(self.holds.so_far());
            }
            Input::Request(request, reply) => {
                let answer = self.answer(request);
                self.deliver();
                let _ = reply.send(answer);
            }
            Input::Where(hold, reply) => {
                let stack = self.holds.stack(hold).cloned();
                let way = |stack: Stack| stack.0.iter().map(|p| (*p, self.name(*p))).collect();
                let _ = reply.send(stack.map(way));
            }
            Input::Calls(process, of, reply) => {
                self.queries.retain(|_, reply| !reply.is_closed());
                self.query(process, reply, |query| FromCentral::Calls { query, of: Some(of) });
            }
            Input::AskAll(question, reply) => {
                let processes: Vec<_> = self.members.keys().copied().collect();
                self.queries.retain(|_, reply| !reply.is_closed());
                let asked = processes.into_iter().map(|process| {
                    let (reply, answer) = oneshot::channel();
                    self.query(process, reply, question);
                    (process, self.name(process), answer)
                });
                let _ = reply.send(asked.collect());
            }
            Input::Standing(reply) => {
                let _ = reply.send(self.holds.standing_calls(self.now()));
            }
            Input::Kept(reply) => {
                let _ = reply.send(self.log.kept());
            }
            Input::Observe(begins) => {
                let before = self.observers > 0;
                self.observers =
                    if begins { self.observers + 1 } else { self.observers.saturating_sub(1) };
                if before != (self.observers > 0) {
                    for member in self.members.values() {
                        (member.deliver)(FromCentral::Observe(begins));
                    }
                }
            }
        }
    }

    /// Asks a process something; who is not there does not answer.
    fn query(
        &mut self,
        process: ProcessIndex,
        reply: oneshot::Sender<Vec<InFlight>>,
        question: impl FnOnce(u64) -> FromCentral,
    ) {
        let Some(member) = self.members.get(&process) else { return };
        self.next_query += 1;
        self.queries.insert((process, self.next_query), reply);
        (member.deliver)(question(self.next_query));
    }

    /// Ends all that the user holds; how many that were.
    fn continue_everybody(&mut self) -> u64 {
        let paused: Vec<_> =
            self.central.paused().filter(|process| self.members.contains_key(process)).collect();
        for process in &paused {
            self.set_paused(*process, false);
        }
        let users = self.central.stops().filter(|(_, reason)| reason.is_users());
        let users: Vec<StopId> = users.map(|(stop, _)| stop).collect();
        for stop in &users {
            self.central.handle_user(Command::Continue(*stop));
        }
        users.len().max(paused.len()) as u64
    }

    fn usher(&mut self, to: BreakpointId) {
        for stop in self.holds.on_the_way() {
            let because_of = self.central.why(stop);
            if because_of.last().is_some_and(|last| self.holds.stands_at(last.stop, to)) {
                self.central.handle_user(Command::Pass(stop));
            }
        }
    }
}
