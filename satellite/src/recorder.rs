//! What happens goes to the disk, from a thread of its own: the program's threads
//! only put it into a queue.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use ddbx_protocol::session::LEASE;
use ddbx_protocol::{
    Delay, EventKind, EventNumber, ProcessIndex, ProcessName, RealTime, RecordedSoFar,
};
use ddbx_recording::{Entry, Files, LogWriter, Options, Payload, Queue, ToNote};
use tokio::sync::watch;
use tokio::time::timeout;

/// How often the queue is emptied, and all of it written: so within 50 ms, also if this
/// thread is late. More often would cost more: that is what wakes it.
const DRAINED: Duration = Duration::from_millis(25);

/// How long the end of the process waits for the disk.
const LAST_CHANCE: Duration = Duration::from_secs(2);

/// All recorders of this operating-system process, for its end.
static ALL: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// The recorder of a process. What is not written when it is dropped is written then.
pub struct Recorder(Arc<Shared>);

struct Shared {
    /// The recording to which it adds.
    recording: PathBuf,
    queue: Queue,
    /// From when on its clock counts.
    origin: Instant,
    orders: Mutex<Sender<Order>>,
    state: Mutex<State>,
    closed: Condvar,
    /// Set before the queue is emptied for the last time: whoever comes later knows that
    /// it is not in the log.
    is_over: AtomicBool,
    /// Whether events may happen that are not in the log.
    goes_on: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    so_far: RecordedSoFar,
    error: Option<String>,
    is_closed: bool,
}

enum Order {
    /// All on the disk, then tell.
    Flush(Box<dyn FnOnce() + Send>),
    /// The same, and nothing more is written: the run is over, but not the process. Its
    /// log does not say that it ends.
    Finish(Box<dyn FnOnce() + Send>),
    /// The process ends, and so does its log.
    Close,
}

impl Recorder {
    /// Begins to record into these files.
    pub fn start(
        files: Files,
        process: &ProcessName,
        options: Options,
        origin: Instant,
    ) -> io::Result<Self> {
        let (orders, heard) = channel();
        let recording = files.directory().parent().unwrap_or(files.directory()).to_owned();
        let shared = Arc::new(Shared {
            recording,
            queue: Queue::default(),
            origin,
            orders: Mutex::new(orders),
            state: Mutex::default(),
            closed: Condvar::new(),
            is_over: AtomicBool::new(false),
            goes_on: watch::Sender::default(),
        });
        let options = Options { write_after: Duration::ZERO, ..options };
        let writer = LogWriter::new(files, process, options);
        let own = shared.clone();
        let name = "ddbx-recorder".to_owned();
        thread::Builder::new().name(name).spawn(move || own.keep(writer, &heard))?;
        register(&shared);
        Ok(Self(shared))
    }

    /// An event happens: its number.
    pub(crate) fn note(
        &self,
        at: RealTime,
        delay: Delay,
        kind: EventKind,
        payload: Option<Box<Payload>>,
    ) -> EventNumber {
        self.0.queue.note_with(at, delay, kind, payload)
    }

    /// Something happens to a call, if the log has not ended.
    #[inline]
    pub(crate) fn note_in_time(
        &self,
        at: RealTime,
        delay: Delay,
        note: impl FnOnce() -> ToNote,
    ) -> Option<EventNumber> {
        self.0.queue.note_in_time(at, delay, note)
    }

    /// From now on a process that notes name by its number has this name.
    pub(crate) fn meet(&self, process: ProcessIndex, name: ProcessName) {
        self.0.queue.meet(process, name);
    }

    /// An event happens that has a number.
    pub(crate) fn push(&self, entry: Entry) {
        self.0.queue.push(entry);
    }

    /// How far it has come.
    pub fn so_far(&self) -> RecordedSoFar {
        self.0.state().so_far
    }

    /// Whether the log has not ended.
    pub(crate) fn is_open(&self) -> bool {
        !self.0.is_over.load(Ordering::SeqCst)
    }

    /// Others must not hear of an event that is not in the log: if the log has ended it
    /// waits until the logs of all have, or until the process is gone.
    pub(crate) async fn may_be_known(&self) {
        if !self.is_open() {
            let mut goes_on = self.0.goes_on.subscribe();
            // Nobody is there to tell if the process ends.
            let _ = timeout(LEASE, goes_on.wait_for(|goes_on| *goes_on)).await;
        }
    }

    /// The logs of all have ended.
    pub(crate) fn goes_on(&self) {
        self.0.goes_on.send_replace(true);
    }

    /// Nothing more is recorded. Tells when all that has happened so far is on the disk, or
    /// cannot be.
    pub fn finish(&self, tell: impl FnOnce() + Send + 'static) {
        self.0.order(Order::Finish(Box::new(tell)));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Shared {
    /// The recorder's thread.
    fn keep(&self, mut writer: LogWriter<Files>, orders: &Receiver<Order>) {
        let mut said = false;
        loop {
            let order = match orders.recv_timeout(DRAINED) {
                Ok(order) => Some(order),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Order::Close),
            };
            if matches!(order, Some(Order::Finish(_) | Order::Close)) {
                self.is_over.store(true, Ordering::SeqCst);
                self.queue.end();
            }
            let now = RealTime::default() + self.origin.elapsed();
            writer.drain(now, &self.queue);
            if !said && let Some(error) = writer.last_error() {
                said = true;
                eprintln!(
                    "ddbx: recording: {error}; the program goes on, and what cannot be written \
                     is counted"
                );
            }
            match order {
                None => self.tell(&writer),
                Some(Order::Flush(tell)) => {
                    writer.flush(now);
                    writer.sync();
                    self.tell(&writer);
                    tell();
                }
                Some(Order::Finish(tell)) => {
                    writer.flush(now);
                    writer.sync();
                    self.tell(&writer);
                    self.state().is_closed = true;
                    self.closed.notify_all();
                    tell();
                    return;
                }
                Some(Order::Close) => {
                    writer.flush(now);
                    self.tell(&writer);
                    let (last, result) = (writer.written(), writer.close(now));
                    let mut state = self.state();
                    match result {
                        Ok(_) => state.so_far.durable = last.max(state.so_far.durable),
                        Err(error) => state.error = Some(error.to_string()),
                    }
                    state.is_closed = true;
                    self.closed.notify_all();
                    return;
                }
            }
        }
    }

    fn tell(&self, writer: &LogWriter<Files>) {
        let counters = writer.counters();
        let mut state = self.state();
        state.so_far = RecordedSoFar {
            written: writer.written(),
            durable: writer.durable(),
            missing: counters.missing,
            bytes: counters.bytes,
        };
        // An error that is over is no reason to worry.
        let is_behind = writer.poll_at().is_some() || writer.durable() < writer.written();
        state.error = writer.last_error().filter(|_| is_behind).map(ToString::to_string);
    }

    fn order(&self, order: Order) {
        // Once the log is closed there is nothing left to do.
        let _ = self.orders.lock().unwrap_or_else(PoisonError::into_inner).send(order);
    }

    /// Writes what is left, unless the disk takes too long.
    fn close(&self) {
        self.order(Order::Close);
        self.wait();
    }

    fn wait(&self) {
        let is_open = |state: &mut State| !state.is_closed;
        let _ = self.closed.wait_timeout_while(self.state(), LAST_CHANCE, is_open);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A program may end without dropping anything.
fn register(shared: &Arc<Shared>) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        shutdown_hooks::add_shutdown_hook(close_all);
    });
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|recorder| recorder.strong_count() > 0);
    all.push(Arc::downgrade(shared));
}

fn all() -> Vec<Arc<Shared>> {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().filter_map(Weak::upgrade).collect()
}

/// Nothing more is written to a recording by this program, which goes on.
pub fn finish(recording: &Path) {
    let all = all();
    let here: Vec<_> = all.iter().filter(|one| one.recording == recording).collect();
    here.iter().for_each(|one| one.order(Order::Finish(Box::new(|| ()))));
    here.iter().for_each(|one| one.wait());
    here.iter().for_each(|one| _ = one.goes_on.send_replace(true));
}

extern "C" fn close_all() {
    all().iter().for_each(|shared| shared.close());
}

/// Waits until all that has happened so far in this program is on the disk, as far as
/// it is recorded.
pub async fn flush_all() -> Result<(), String> {
    for shared in all() {
        let (tell, told) = tokio::sync::oneshot::channel();
        shared.order(Order::Flush(Box::new(move || {
            let _ = tell.send(());
        })));
        // A log that was closed has been flushed, or says why not.
        let _ = told.await;
        if let Some(error) = shared.state().error.clone() {
            return Err(error);
        }
    }
    Ok(())
}
