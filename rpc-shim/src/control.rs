//! Whose control is it? The thread of control that a task carries, with its clock.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ddbx_protocol::{AllOn, Delay, MethodName, PointLabel, RpcEvent, Stack, VirtualTime};
use ddbx_satellite::driver::Handle;
use ddbx_satellite::logic::clock;
use ddbx_satellite::logic::strand::{Gate, Strand};
use tokio::task::JoinHandle;

use crate::process::Process;

/// Beyond this, a deadline was not meant: it is the one that tarpc was given.
const FAR: Duration = Duration::from_secs(15 * 24 * 3_600);

/// tarpc's own, for calls without any other.
const DEADLINE_DEFAULT: Duration = Duration::from_secs(10);

tokio::task_local! {
    static CURRENT: Arc<Control>;
}

/// A thread of control while it is in one process.
pub(crate) struct Control {
    process: Process,
    satellite: Handle,
    pub(crate) stack: Stack,
    delay: AtomicU64,
    deadline: Deadline,
}

/// Until when, in virtual time, and what the handler was shown of it.
#[derive(Clone, Copy)]
struct Deadline {
    due: VirtualTime,
    shown: Option<Instant>,
}

impl Control {
    pub(crate) fn new(
        process: &Process,
        satellite: &Handle,
        stack: Stack,
        delay: Delay,
        due: VirtualTime,
        shown: Option<Instant>,
    ) -> Arc<Self> {
        Arc::new(Self {
            process: process.clone(),
            satellite: satellite.clone(),
            stack,
            delay: AtomicU64::new(delay.as_nanos()),
            deadline: Deadline { due, shown },
        })
    }

    /// The control of this task, if it is in this process.
    pub(crate) fn current(process: &Process) -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok().filter(|control| control.process.is(process))
    }

    /// Runs a future as this control.
    pub(crate) async fn run<F: Future>(self: Arc<Self>, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    pub(crate) fn delay(&self) -> Delay {
        Delay::from_nanos(self.delay.load(Ordering::Acquire))
    }

    /// Woken by something with this delay, after a wait that began at `began`.
    pub(crate) fn wake(&self, began: VirtualTime, by: Delay) {
        let now = self.satellite.now();
        let delay = clock::wake(now, began, now - by, [self.delay(), by], &AllOn);
        self.delay.store(delay.as_nanos(), Ordering::Release);
    }

    /// What is left, in virtual time, of a deadline that a context shows.
    pub(crate) fn remaining(&self, shown: Instant) -> Duration {
        let left = shown.saturating_duration_since(Instant::now());
        if self.deadline.shown == Some(shown) || left > FAR {
            self.deadline.due.since(self.satellite.now() - self.delay())
        } else {
            left
        }
    }

    /// Passes a gate of this process.
    pub(crate) async fn pass(&self, gate: &Gate) {
        let delay = self.satellite.pass(&self.strand(), gate).await;
        self.delay.store(delay.as_nanos(), Ordering::Release);
    }

    /// Sleeps for a length of virtual time.
    pub(crate) async fn sleep(&self, length: Duration) {
        let delay = self.delay();
        let due = (self.satellite.now() - delay) + length;
        let mut timer = self.satellite.arm(due, delay, &self.stack, Gate::Sleep);
        let delay = timer.fired().await;
        self.delay.store(delay.as_nanos(), Ordering::Release);
    }

    fn strand(&self) -> Strand {
        let (id, stack, delay) = (self.satellite.new_strand(), self.stack.clone(), self.delay());
        Strand { id, stack, delay, is_branch: false }
    }
}

/// What is left of a deadline without a control that knows better.
pub(crate) fn remaining(shown: Instant) -> Duration {
    let left = shown.saturating_duration_since(Instant::now());
    if left > FAR { DEADLINE_DEFAULT } else { left }
}

/// The control of this task, wherever it is.
pub(crate) fn current() -> Option<Arc<Control>> {
    CURRENT.try_with(Arc::clone).ok()
}

pub(crate) fn rpc(event: RpcEvent, method: &str) -> Gate {
    // tarpc's names are identifiers and a dot; if they ever are not, the call
    // goes on under a name that no breakpoint means.
    let method = MethodName::new(method).or_else(|_| MethodName::new("unnamed"));
    Gate::Rpc(event, method.expect("a valid name"))
}

/// Passes a labelled place: a breakpoint `process:point(label)` stops here. Outside
/// a wrapped handler, or without a session, it does nothing.
///
/// # Panics
/// If the label is empty, too long, or has characters that labels cannot have.
pub async fn point(label: &str) {
    let label = PointLabel::new(label).unwrap_or_else(|error| panic!("{error}"));
    if let Some(control) = current() {
        control.pass(&Gate::Point(label)).await;
    }
}

/// Starts a new control in this process, which takes over the delay of this one.
/// Without a session it is `tokio::spawn`.
pub fn spawn<F>(_name: &str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let Some(parent) = current() else { return tokio::spawn(future) };
    let Control { process, satellite, .. } = &*parent;
    let delay = parent.delay();
    let stack = Stack::home(satellite.process());
    let due = (satellite.now() - delay) + DEADLINE_DEFAULT;
    let child = Control::new(process, satellite, stack, delay, due, None);
    tokio::spawn(async move {
        child.pass(&Gate::Spawn).await;
        child.run(future).await
    })
}
