//! The satellite at work: the program's events come in from its own threads and
//! are mostly answered on the spot; a thread of the satellite's own hears central
//! and keeps the timers.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use ddbx_protocol::session::HEARTBEAT;
use ddbx_protocol::{
    AllOn, Delay, Mode, ProcessIndex, RealTime, Stack, ToCentral, ToSatellite, VirtualTime,
};
use tokio::sync::oneshot;

use crate::logic::strand::{Gate, Strand, StrandId};
use crate::logic::{Output, Satellite, Verdict};

/// How long the thread sleeps when there is nothing to wait for: then it looks
/// whether anybody still needs it.
const IDLE: Duration = Duration::from_millis(500);

/// A process's satellite, shared by all that happens in the process.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    process: ProcessIndex,
    origin: Instant,
    /// The delay with which events pass without further question; `BUSY` if they
    /// do not.
    quiet_at: AtomicU64,
    next_strand: AtomicU64,
    /// Tells the thread that something is due earlier than it thinks.
    wake: Sender<()>,
    core: Mutex<Core>,
}

const BUSY: u64 = u64::MAX;

struct Core {
    satellite: Satellite,
    /// Who is told when a strand goes on.
    stopped: HashMap<StrandId, oneshot::Sender<Delay>>,
    timers: HashMap<StrandId, Timer>,
    due: BTreeMap<(RealTime, StrandId), ()>,
    /// When the thread looks next.
    looks_at: Option<RealTime>,
    send: Box<dyn Fn(ToCentral) + Send>,
}

struct Timer {
    strand: Strand,
    gate: Gate,
    due: VirtualTime,
    fire: oneshot::Sender<Delay>,
}

impl Handle {
    /// Starts the satellite of a process that central has given this number.
    pub fn start(
        process: ProcessIndex,
        send: impl Fn(ToCentral) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (wake, look) = channel();
        let mut satellite = Satellite::new(process, Mode::Permit, AllOn);
        let origin = Instant::now();
        satellite.handle_attached(RealTime::default());
        let quiet_at = satellite.quiet_at().map_or(BUSY, Delay::as_nanos);
        let core = Core {
            satellite,
            stopped: HashMap::new(),
            timers: HashMap::new(),
            due: BTreeMap::new(),
            looks_at: None,
            send: Box::new(send),
        };
        let shared = Arc::new(Shared {
            process,
            origin,
            quiet_at: AtomicU64::new(quiet_at),
            next_strand: AtomicU64::new(1),
            wake,
            core: Mutex::new(core),
        });
        let weak = Arc::downgrade(&shared);
        let name = "ddbx-satellite".to_owned();
        thread::Builder::new().name(name).spawn(move || keep(&weak, &look))?;
        Ok(Self(shared))
    }

    /// Where central's messages go: a handle that does not keep the satellite.
    pub fn inbox(&self) -> Inbox {
        Inbox(Arc::downgrade(&self.0))
    }

    /// The process's number in the session.
    pub fn process(&self) -> ProcessIndex {
        self.0.process
    }

    /// The process's clock.
    pub fn now(&self) -> RealTime {
        RealTime::default() + self.0.origin.elapsed()
    }

    /// The greatest delay in the process.
    pub fn floor(&self) -> Delay {
        self.lock().satellite.floor()
    }

    /// A number for a strand that comes into the process.
    pub fn new_strand(&self) -> StrandId {
        StrandId(self.0.next_strand.fetch_add(1, Ordering::Relaxed))
    }

    /// A strand passes a gate, now or when it may; returns its delay then.
    pub async fn pass(&self, strand: &Strand, gate: &Gate) -> Delay {
        if self.0.quiet_at.load(Ordering::Acquire) == strand.delay.as_nanos() {
            return strand.delay;
        }
        let now = self.now();
        self.stand(strand, |core| core.satellite.handle_event(now, strand, gate)).await
    }

    /// The same for a control from outside, which takes over a delay.
    pub async fn enter(&self, strand: &Strand, gate: &Gate) -> Delay {
        let now = self.now();
        self.stand(strand, |core| core.satellite.handle_newcomer(now, strand, gate)).await
    }

    async fn stand(&self, strand: &Strand, judge: impl FnOnce(&mut Core) -> Verdict) -> Delay {
        let (resume, resumed) = oneshot::channel();
        {
            let mut core = self.lock();
            if let Verdict::Go(delay) = judge(&mut core) {
                self.drain(&mut core);
                return delay;
            }
            core.stopped.insert(strand.id, resume);
            self.drain(&mut core);
        }
        // If this future is dropped, so is the strand.
        let guard = DropGuard { handle: self, strand: strand.id, armed: true };
        let delay = resumed.await.unwrap_or(strand.delay);
        guard.disarm();
        delay
    }

    /// The first call from another process arrives.
    pub fn accepted(&self, from: ProcessIndex) {
        let mut core = self.lock();
        core.satellite.handle_accepted(from);
        self.drain(&mut core);
    }

    /// A timer on a strand's clock. Awaiting it yields the strand's delay when it
    /// has run out and was allowed to; dropping it disarms it.
    pub fn arm(&self, due: VirtualTime, delay: Delay, stack: &Stack, gate: Gate) -> Armed {
        let id = self.new_strand();
        let (fire, fired) = oneshot::channel();
        let strand = Strand { id, stack: stack.clone(), delay, is_branch: true };
        let mut core = self.lock();
        core.timers.insert(id, Timer { strand, gate, due, fire });
        core.due.insert((due + delay, id), ());
        self.drain(&mut core);
        drop(core);
        Armed { handle: self.clone(), id, fired }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic elsewhere in the program is no reason to stop it here.
        self.0.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what the logic has asked for.
    fn drain(&self, core: &mut Core) {
        while let Some(output) = core.satellite.poll_output() {
            match output {
                Output::Send(message) => (core.send)(message),
                Output::Resume { strand, delay } => {
                    if let Some(resume) = core.stopped.remove(&strand) {
                        let _ = resume.send(delay);
                    } else {
                        self.ring(core, strand, delay);
                    }
                }
            }
        }
        let quiet_at = core.satellite.quiet_at().map_or(BUSY, Delay::as_nanos);
        self.0.quiet_at.store(quiet_at, Ordering::Release);
        let due = core.due.first_key_value().map(|((at, _), ())| *at);
        let due = due.into_iter().chain(core.satellite.poll_timeout()).min();
        // The thread is woken only for what it would sleep through.
        if due.is_some_and(|due| core.looks_at.is_none_or(|looks_at| due < looks_at)) {
            core.looks_at = due;
            let _ = self.0.wake.send(());
        }
    }

    /// A timer has passed its gate. If its delay has grown while it did not stand
    /// still, central is lost and it is not due yet. A deadline then gets some more
    /// time: others may find out a little later, and what it waits for goes on only
    /// then.
    fn ring(&self, core: &mut Core, id: StrandId, delay: Delay) {
        let Some(timer) = core.timers.get_mut(&id) else { return };
        timer.strand.delay = delay;
        if self.now() - delay < timer.due {
            let more = if timer.gate == Gate::Deadline { HEARTBEAT } else { Duration::ZERO };
            core.due.insert((timer.due + delay + more, id), ());
        } else if let Some(timer) = core.timers.remove(&id) {
            let _ = timer.fire.send(delay);
        }
    }

    /// Brings all due timers to their gate, and says when to look again.
    fn tend(&self) -> Duration {
        let mut core = self.lock();
        let now = self.now();
        if core.satellite.poll_timeout().is_some_and(|due| due <= now) {
            core.satellite.handle_timeout(now);
        }
        while let Some(entry) = core.due.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((_, id), ()) = entry.remove_entry();
            let Some(timer) = core.timers.get(&id) else { continue };
            let (strand, gate) = (timer.strand.clone(), timer.gate.clone());
            if let Verdict::Go(delay) = core.satellite.handle_event(now, &strand, &gate) {
                self.ring(&mut core, id, delay);
            }
        }
        // Whatever is due from here on, this thread knows of it.
        core.looks_at = Some(RealTime::default());
        self.drain(&mut core);
        let timer = core.due.first_key_value().map(|((at, _), ())| *at);
        core.looks_at = timer.into_iter().chain(core.satellite.poll_timeout()).min();
        core.looks_at.map_or(IDLE, |next| next.since(self.now()).min(IDLE))
    }

    fn forget(&self, strand: StrandId) {
        let now = self.now();
        let mut core = self.lock();
        core.stopped.remove(&strand);
        core.timers.remove(&strand);
        core.satellite.handle_drop(now, strand);
        self.drain(&mut core);
    }
}

/// The satellite's thread: until nobody holds the handle any more.
fn keep(shared: &Weak<Shared>, look: &Receiver<()>) {
    let mut wait = Duration::ZERO;
    while look.recv_timeout(wait) != Err(RecvTimeoutError::Disconnected) {
        let Some(shared) = shared.upgrade() else { return };
        wait = Handle(shared).tend();
    }
}

/// Takes central's messages for a satellite, as long as there is one.
#[derive(Clone)]
pub struct Inbox(Weak<Shared>);

impl Inbox {
    /// Central says something: it holds when this returns.
    pub fn deliver(&self, message: ToSatellite) {
        self.tell(|satellite, now| satellite.handle_central(now, message));
    }

    /// Central is gone.
    pub fn lost(&self) {
        self.tell(Satellite::handle_lost);
    }

    fn tell(&self, what: impl FnOnce(&mut Satellite, RealTime)) {
        if let Some(handle) = self.0.upgrade().map(Handle) {
            let mut core = handle.lock();
            what(&mut core.satellite, handle.now());
            handle.drain(&mut core);
        }
    }
}

/// Tells the satellite when a strand that stands still is dropped.
struct DropGuard<'a> {
    handle: &'a Handle,
    strand: StrandId,
    armed: bool,
}

impl DropGuard<'_> {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for DropGuard<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.handle.forget(self.strand);
        }
    }
}

/// A timer that is running.
pub struct Armed {
    handle: Handle,
    id: StrandId,
    fired: oneshot::Receiver<Delay>,
}

impl Armed {
    /// Waits until it has run out; the delay of its strand then.
    pub async fn fired(&mut self) -> Delay {
        match (&mut self.fired).await {
            Ok(delay) => delay,
            // Nobody is left to ring it: it never rings.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.handle.forget(self.id);
    }
}
