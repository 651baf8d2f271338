//! The satellite at work: the program's events come in from its own threads and
//! are mostly answered on the spot; a thread of the satellite's own keeps the
//! timers, and central's messages come in through an [`Inbox`].

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use ddbx_protocol::{
    AllOn, Attach, ControlId, Delay, FromSatellite, Gate, InFlight, Mode, Names, ProcessIndex,
    ProcessKey, ProcessName, RealTime, Standing, Status, ToCentral,
};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

mod alarms;
mod course;
mod events;
mod floor;
mod fragments;
mod in_turn;
mod inbox;
mod pass;
mod replay;
mod timers;

use crate::conditions::Conditions;
use crate::logic::strand::{Strand, StrandId};
use crate::logic::{Output, Satellite};

pub use alarms::Alarm;
pub use course::{Course, Perturbation};
pub use floor::Floor;
pub use fragments::stands;
pub use in_turn::{Abroad, InTurn};
pub use inbox::{Inbox, Send as SendToCentral};
pub use pass::{Arrival, Captured, Open, Passed, Somebody, Step, Visit};
pub(crate) use replay::Replay;
pub use timers::{Armed, TimerOf};

/// How long the thread sleeps when there is nothing to wait for: then it looks
/// whether anybody still needs it.
const IDLE: Duration = Duration::from_millis(500);

/// How often it sends away what has happened, while somebody looks.
const OBSERVED: Duration = Duration::from_millis(50);

/// What the shim knows and others ask for. It is asked while the satellite is
/// locked, so it must not use the satellite.
pub trait Report: std::marker::Send + Sync {
    /// The calls that are in the process.
    fn calls(&self) -> Vec<InFlight>;
    /// Controls that are in the process and wait for nothing that ddbx knows of:
    /// they run, or wait for something inside the program.
    fn inside(&self) -> Vec<Strand>;
    /// How the process is doing; breakpoints are the satellite's to fill in.
    fn status(&self) -> Status;
    /// The names that were met so far, if they are more than `known`.
    fn names(&self, known: usize) -> Option<Names>;
    /// Watched values.
    fn watched(&self) -> Map<String, Value>;
}

/// What a process says of itself in which there are only its events, such as one that is made
/// to measure a satellite or to test it.
pub struct NothingToReport;

impl Report for NothingToReport {
    fn calls(&self) -> Vec<InFlight> {
        Vec::new()
    }

    fn inside(&self) -> Vec<Strand> {
        Vec::new()
    }

    fn status(&self) -> Status {
        Status::default()
    }

    fn names(&self, _: usize) -> Option<Names> {
        None
    }

    fn watched(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// A process's satellite, shared by all that happens in the process.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    process: ProcessIndex,
    /// Locked for nothing else than to read or change it, also while the core is.
    name: Mutex<ProcessName>,
    names_had: AtomicU64,
    key: ProcessKey,
    floor: Floor,
    /// The delay with which events pass without further question; `BUSY` if they
    /// do not.
    quiet_at: AtomicU64,
    /// The same, and nobody wants to know of them.
    open_at: AtomicU64,
    /// The same, and they are recorded, which is all.
    noted_at: AtomicU64,
    /// Except those of these groups, where breakpoints are.
    looked_out_for: AtomicU64,
    /// Whether somebody is known to wait inside the program.
    inside: AtomicBool,
    next_strand: AtomicU64,
    last_caller: AtomicU64,
    /// Tells the thread that something is due earlier than it thinks.
    wake: Sender<()>,
    core: Mutex<Core>,
    alarms: alarms::Alarms,
    events: events::Events,
    course: OnceLock<course::Running>,
    conditions: Conditions,
    report: Arc<dyn Report>,
}

const BUSY: u64 = u64::MAX;

/// How many of those that a process calls, and of those that call it, are remembered. They
/// are only told again after a loss.
const PEERS_MAX: usize = 16 * 1024;

struct Core {
    satellite: Satellite,
    own_name: Option<ProcessName>,
    /// Who stands still, and whom to tell when it goes on.
    standing: HashMap<StrandId, Waiting>,
    /// When the thread looks next, alarms aside.
    looks_at: Option<RealTime>,
    /// Whom this process calls, and who calls it: told again after a loss.
    callees: BTreeSet<ProcessIndex>,
    callers: BTreeSet<ProcessIndex>,
    /// How many of them were forgotten.
    peers_dropped: u64,
    /// How many of this name have taken part in the session.
    start: u32,
    send: Option<SendToCentral>,
}

struct Waiting {
    resume: oneshot::Sender<Passed>,
    control: ControlId,
    captured: Option<Captured>,
    /// Whether central knows what stands there.
    told: bool,
}

impl Handle {
    /// Starts the satellite of a process. It is alone until central welcomes it.
    pub fn start(
        process: ProcessIndex,
        name: ProcessName,
        report: Arc<dyn Report>,
    ) -> std::io::Result<Self> {
        let (wake, look) = channel();
        let core = Core {
            satellite: Satellite::new(process, Mode::Permit, AllOn),
            own_name: None,
            standing: HashMap::new(),
            looks_at: None,
            callees: BTreeSet::new(),
            callers: BTreeSet::new(),
            peers_dropped: 0,
            start: 1,
            send: None,
        };
        let shared = Arc::new(Shared {
            process,
            name: Mutex::new(name),
            names_had: AtomicU64::new(1),
            key: ProcessKey::random()?,
            quiet_at: AtomicU64::new(0),
            open_at: AtomicU64::new(0),
            noted_at: AtomicU64::new(BUSY),
            floor: Floor::new(),
            looked_out_for: AtomicU64::new(0),
            inside: AtomicBool::new(false),
            next_strand: AtomicU64::new(1),
            last_caller: AtomicU64::new(0),
            wake,
            core: Mutex::new(core),
            alarms: alarms::Alarms::new(process),
            events: events::Events::default(),
            course: OnceLock::new(),
            conditions: Conditions::default(),
            report,
        });
        let weak = Arc::downgrade(&shared);
        let thread_name = "ddbx-satellite".to_owned();
        thread::Builder::new().name(thread_name).spawn(move || keep(&weak, &look))?;
        Ok(Self(shared))
    }

    /// Where central's messages go: a handle that does not keep the satellite.
    pub fn inbox(&self) -> Inbox {
        Inbox(Arc::downgrade(&self.0))
    }

    /// The name that the program itself gives it, if that is not the one it has.
    pub fn set_own_name(&self, name: ProcessName) {
        self.lock().own_name = Some(name);
    }

    /// What it says of itself when it joins a session.
    pub fn attach(&self) -> Attach {
        let (name, own_name) = (self.name(), self.lock().own_name.clone());
        let (process, key) = (self.0.process, self.0.key);
        Attach { process, name, own_name, pid: std::process::id(), key }
    }

    /// The process's number in any session.
    #[inline]
    pub fn process(&self) -> ProcessIndex {
        self.0.process
    }

    /// The process's name in the session.
    pub fn name(&self) -> ProcessName {
        self.0.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many names it has had.
    #[inline]
    pub fn names_had(&self) -> u64 {
        self.0.names_had.load(Ordering::Acquire)
    }

    fn set_name(&self, name: ProcessName) {
        self.is_called(self.process(), &name);
        *self.0.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
        // Only then: whoever sees this reads the new one.
        self.0.names_had.fetch_add(1, Ordering::Release);
    }

    /// How many processes of this name have taken part in the session, this one
    /// included.
    pub fn start_number(&self) -> u32 {
        self.lock().start
    }

    /// When the process's clock began.
    pub fn origin(&self) -> Instant {
        self.0.floor.origin()
    }

    /// The process's clock.
    #[inline]
    pub fn now(&self) -> RealTime {
        self.at(Instant::now())
    }

    /// What the process's clock shows at a moment.
    #[inline]
    pub fn at(&self, moment: Instant) -> RealTime {
        self.0.floor.at(moment)
    }

    /// The greatest delay in the process.
    #[inline]
    pub fn floor(&self) -> Delay {
        self.0.floor.delay()
    }

    /// The same, for whoever needs nothing else of the satellite and shall not keep it.
    pub fn floor_alone(&self) -> Floor {
        self.0.floor
    }

    /// A number for a strand that comes into the process.
    #[inline]
    pub fn new_strand(&self) -> StrandId {
        StrandId(self.0.next_strand.fetch_add(1, Ordering::Relaxed))
    }

    /// This process can call another one from now on.
    pub fn connected(&self, to: ProcessIndex) {
        let mut core = self.lock();
        if core.callees.insert(to) {
            core.peers_dropped += without_excess(&mut core.callees, to);
            core.satellite.handle_connected(to);
            self.drain(&mut core);
        }
    }

    /// Another process can call this one from now on.
    #[inline]
    pub fn accepted(&self, from: ProcessIndex) {
        // Calls mostly come from whom the last one came.
        if self.0.last_caller.load(Ordering::Acquire) != from.0 {
            self.accepted_another(from);
        }
    }

    fn accepted_another(&self, from: ProcessIndex) {
        let mut core = self.lock();
        if core.callers.insert(from) {
            core.peers_dropped += without_excess(&mut core.callers, from);
            core.satellite.handle_accepted(from);
            self.drain(&mut core);
        }
        self.0.last_caller.store(from.0, Ordering::Release);
    }

    /// A control runs on in the process and may wait for something inside it.
    /// While nothing stands still there is nothing to note: whoever is there when
    /// that changes is asked for then.
    /// The strand is asked for when it can be noted: it may have gone by then.
    pub fn inside(&self, delay: Delay, strand: impl FnOnce() -> Option<Strand>) {
        if self.0.quiet_at.load(Ordering::SeqCst) != delay.as_nanos() {
            let mut core = self.lock();
            self.note_inside(&mut core, || strand().into_iter());
            self.drain(&mut core);
        }
    }

    /// A control leaves the process, or ends. From before this is called on, it is
    /// not among those whom the report says to be inside.
    #[inline]
    pub fn ended(&self, strand: StrandId) {
        if self.0.inside.load(Ordering::SeqCst) {
            let mut core = self.lock();
            core.satellite.handle_drop(self.now(), strand);
            self.drain(&mut core);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic elsewhere in the program is no reason to stop it here.
        self.0.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what the logic has asked for.
    fn drain(&self, core: &mut Core) {
        self.perform(core);
        let groups = core.satellite.breakpoints().groups();
        self.0.looked_out_for.store(groups.0, Ordering::SeqCst);
        self.0.floor.raise(core.satellite.floor());
        let quiet = core.satellite.calm_at();
        let quiet_at = quiet.map_or(BUSY, Delay::as_nanos);
        self.open(core);
        if self.0.quiet_at.swap(quiet_at, Ordering::SeqCst) != quiet_at {
            if quiet.is_some() {
                core.satellite.handle_quiet();
            }
            // From now on it matters who is here, except who passes without question.
            if quiet != Some(Delay::ZERO) {
                let matters = |strand: &Strand| Some(strand.delay) != quiet;
                self.note_inside(core, || self.0.report.inside().into_iter().filter(matters));
            }
            self.perform(core);
        }
        self.0.inside.store(!core.satellite.nobody_inside(), Ordering::SeqCst);
        let due = core.satellite.poll_timeout();
        // The thread is woken only for what it would sleep through.
        if due.is_some_and(|due| core.looks_at.is_none_or(|looks_at| due < looks_at)) {
            core.looks_at = due;
            let _ = self.0.wake.send(());
        }
    }

    /// Says with which delay events need nothing at all, or only to be written down.
    fn open(&self, core: &Core) {
        let calm = core.satellite.calm_at().filter(|_| !self.0.events.is_observed());
        let course = self.0.course.get();
        let open = calm.filter(|_| course.is_none());
        let noted = calm.filter(|_| course.is_some_and(course::Running::only_records));
        let nanos = |delay: Option<Delay>| delay.map_or(BUSY, Delay::as_nanos);
        self.0.open_at.store(nanos(open), Ordering::SeqCst);
        self.0.noted_at.store(nanos(noted), Ordering::SeqCst);
    }

    /// Notes strands that may wait inside the program. Whoever ends while they are
    /// looked up must not think that there is nobody to forget: so that is said
    /// first.
    fn note_inside<I: Iterator<Item = Strand>>(&self, core: &mut Core, who: impl FnOnce() -> I) {
        self.0.inside.store(true, Ordering::SeqCst);
        for strand in who() {
            if core.satellite.inside_since(strand.id).is_none() {
                core.satellite.handle_wait_inside(self.now(), &strand);
            }
        }
    }

    fn perform(&self, core: &mut Core) {
        while let Some(output) = core.satellite.poll_output() {
            match output {
                Output::Send(message) => core.send(message),
                Output::Resume { strand, delay, forced } => {
                    if let Some(waiting) = core.standing.remove(&strand) {
                        let _ = waiting.resume.send(Passed { delay, is_free: forced });
                    }
                }
            }
        }
    }

    /// Wakes whose timer is due, does what else is, and says when to look again.
    fn tend(&self) -> Duration {
        if self.replay().is_some_and(Replay::is_freed) {
            self.0.alarms.ring_at_the_end();
        }
        let alarm = self.0.alarms.ring(self.now());
        let mut core = self.lock();
        let now = self.now();
        if core.satellite.poll_timeout().is_some_and(|due| due <= now) {
            core.satellite.handle_timeout(now);
        }
        self.send_events(&core);
        // Whatever is due from here on, this thread knows of it.
        core.looks_at = Some(RealTime::default());
        self.drain(&mut core);
        core.looks_at = core.satellite.poll_timeout();
        let now = self.now();
        let alarm = alarm.map(|at| at.since(now).max(alarms::PAUSE));
        let due = core.looks_at.map(|at| at.since(now));
        let is_watched = self.0.events.is_observed() || self.is_replay();
        let idle = if is_watched { OBSERVED } else { IDLE };
        alarm.into_iter().chain(due).fold(idle, Duration::min)
    }

    fn send_events(&self, core: &Core) {
        let Some(send) = &core.send else { return };
        for (events, dropped) in self.0.events.take() {
            send(FromSatellite::Events { events, dropped });
        }
        if let Some(progress) = self.progress() {
            send(FromSatellite::Replays(Box::new(progress)));
        }
    }

    fn forget(&self, strand: StrandId) {
        let now = self.now();
        let mut core = self.lock();
        core.standing.remove(&strand);
        core.satellite.handle_drop(now, strand);
        self.drain(&mut core);
    }
}

impl Core {
    /// Tells central something; of a stop first what stands there.
    fn send(&mut self, message: ToCentral) {
        let Some(send) = &self.send else { return };
        if let ToCentral::Stopped { number, .. } = &message
            && let Some((strand, gate)) = self.satellite.standing(*number)
        {
            let awaited = self.satellite.awaited(*number);
            if let Some(waiting) = self.standing.get_mut(&strand)
                && !waiting.told
            {
                waiting.told = true;
                let standing = Standing { awaited, ..waiting.standing(gate) };
                send(FromSatellite::Stands { number: *number, standing });
            }
        }
        send(FromSatellite::Says(message));
    }
}

impl Waiting {
    fn standing(&self, gate: &Gate) -> Standing {
        let captured = self.captured.as_ref();
        Standing {
            gate: gate.clone(),
            control: self.control.clone(),
            args: captured.and_then(Captured::args_text),
            result: captured.and_then(Captured::result_text),
            awaited: None,
        }
    }
}

/// Forgets one, but not this one, if there are too many; how many that were.
fn without_excess(peers: &mut BTreeSet<ProcessIndex>, but: ProcessIndex) -> u64 {
    let excess = (peers.len() > PEERS_MAX).then(|| peers.iter().copied().find(|p| *p != but));
    excess.flatten().map_or(0, |peer| u64::from(peers.remove(&peer)))
}

/// The satellite's thread: until nobody holds the handle any more.
fn keep(shared: &Weak<Shared>, look: &Receiver<()>) {
    let mut wait = Duration::ZERO;
    while look.recv_timeout(wait) != Err(RecvTimeoutError::Disconnected) {
        let Some(shared) = shared.upgrade() else { return };
        wait = Handle(shared).tend();
    }
}
