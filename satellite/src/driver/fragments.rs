//! What a control does between two events is not in a recording. In a replay, and while
//! it is recorded exactly, others wait until it stands again: then what controls share
//! inside the process is used in the order of their events.

use std::cell::RefCell;
use std::pin::{Pin, pin};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ddbx_protocol::{Delay, EventKind, EventNumber};
use ddbx_recording::Payload;
use smallvec::SmallVec;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::task::{AbortHandle, JoinHandle, yield_now};
use tokio::time::timeout;

use super::Handle;
use super::course::Running;
use super::replay::Replay;

/// How long events wait for a control while it is recorded. One that blocks its thread may
/// wait for one of these very events: so it must end. One that only has to wait for a
/// processor comes back in this time.
const RUNS_MAX: Duration = Duration::from_millis(100);

/// How long they wait for one that may run next and does not come: it may be a branch of a
/// `select!` that nobody looks at now.
const COMES_MAX: Duration = Duration::from_millis(20);

/// One at a time.
pub(super) struct Baton {
    free: Semaphore,
    /// Which fragment has it.
    holder: AtomicU64,
    /// How many have had it.
    count: AtomicU64,
}

/// No fragment has the baton.
const NOBODY: u64 = 0;

impl Default for Baton {
    fn default() -> Self {
        Self { free: Semaphore::new(1), holder: AtomicU64::new(NOBODY), count: AtomicU64::new(0) }
    }
}

impl Baton {
    /// Waits for it, and not for ever for one who has it.
    async fn take(&self) -> Option<SemaphorePermit<'_>> {
        match self.take_now() {
            Some(permit) => Some(permit),
            None => Box::pin(self.wait()).await,
        }
    }

    /// Takes it if nobody has it.
    fn take_now(&self) -> Option<SemaphorePermit<'_>> {
        // Whoever comes to an event has come to the end of what it did before.
        stands();
        self.free.try_acquire().ok()
    }

    async fn wait(&self) -> Option<SemaphorePermit<'_>> {
        let mut free = pin!(self.free.acquire());
        loop {
            let count = self.count.load(Ordering::Acquire);
            let holder = self.holder.load(Ordering::Acquire);
            let longest = if holder == NOBODY { COMES_MAX } else { RUNS_MAX };
            if let Ok(permit) = timeout(longest, free.as_mut()).await {
                return permit.ok();
            }
            // As long as one after the other has it, its turn comes.
            let is_same = (count, holder)
                == (self.count.load(Ordering::Acquire), self.holder.load(Ordering::Acquire));
            match holder {
                NOBODY if is_same => return None,
                _ if is_same => self.let_go(holder),
                _ => {}
            }
        }
    }

    /// The control on this thread runs on, and nobody else until it stands; if it will be
    /// known when that is.
    fn keep(&self, satellite: &Handle, permit: SemaphorePermit<'_>) {
        let fragment = self.count.fetch_add(1, Ordering::AcqRel) + 1;
        if begins(satellite, fragment) {
            self.holder.store(fragment, Ordering::Release);
            permit.forget();
        }
    }

    /// A fragment does not have it any longer, if it had.
    fn let_go(&self, fragment: u64) {
        let (done, not) = (Ordering::AcqRel, Ordering::Relaxed);
        let had_it = self.holder.compare_exchange(fragment, NOBODY, done, not).is_ok();
        if had_it && fragment != NOBODY {
            self.free.add_permits(1);
        }
    }
}

thread_local! {
    /// While a control is polled: the satellites by whose events it runs, and as which of
    /// their fragments.
    static FRAGMENT: RefCell<Option<Ran>> = const { RefCell::new(None) };
}

/// Fragments that are under way until this is dropped.
#[derive(Default)]
struct Ran(SmallVec<[(Handle, u64); 1]>);

/// Whether it will be known when the control on this thread stands again.
pub(super) fn begins(satellite: &Handle, fragment: u64) -> bool {
    FRAGMENT.with_borrow_mut(|ran| {
        if let Some(ran) = ran {
            ran.0.push((satellite.clone(), fragment));
        }
        ran.is_some()
    })
}

/// The control on this thread comes to an event of a replay: what it did before is over,
/// if it ran by an event of that.
pub(super) fn ends_of(replay: &Replay) -> bool {
    FRAGMENT.with_borrow_mut(|ran| {
        let Some(ran) = ran else { return false };
        let before = ran.0.len();
        let is_other = |of: &Handle| !of.replay().is_some_and(|other| ptr::eq(other, replay));
        ran.0.retain(|(satellite, _)| is_other(satellite));
        ran.0.len() < before
    })
}

/// The control on this thread is about to block it: it stands from now on.
pub fn stands() {
    drop(taken());
}

/// What the control on this thread ran as, so that whoever has this now ends it.
fn taken() -> Ran {
    let ran = FRAGMENT.with_borrow_mut(|fragment| fragment.as_mut().map(std::mem::take));
    ran.unwrap_or_default()
}

impl Drop for Ran {
    fn drop(&mut self) {
        for (satellite, fragment) in self.0.drain(..) {
            match (satellite.replay(), satellite.baton()) {
                (Some(replay), _) => replay.stands(),
                (None, Some(baton)) => baton.let_go(fragment),
                (None, None) => {}
            }
        }
    }
}

/// Ends a fragment, also by a panic.
struct Polled(Option<Ran>);

impl Polled {
    fn begin() -> Self {
        Self(FRAGMENT.replace(Some(Ran::default())))
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        drop(FRAGMENT.replace(self.0.take()));
    }
}

/// The last fragment of a task ends when whoever joins it has been told of its end: so tasks
/// are joined in the order in which they end.
async fn end_with(task: oneshot::Receiver<AbortHandle>, last: Ran) {
    if let Ok(task) = task.await {
        while !task.is_finished() {
            yield_now().await;
        }
        // It is finished, and tokio tells whoever waits for that in this very moment.
        yield_now().await;
    }
    drop(last);
}

impl Handle {
    /// Runs all that a control does in this process, while others wait.
    pub async fn run<F: Future>(&self, mut control: Pin<&mut F>) -> F::Output {
        std::future::poll_fn(|context| {
            let _polled = Polled::begin();
            control.as_mut().poll(context)
        })
        .await
    }

    /// Runs all that a control does, in a task of its own.
    pub fn spawn<F>(&self, control: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        if !self.is_in_order() {
            return tokio::spawn(control);
        }
        let (tell, told) = oneshot::channel();
        let task = tokio::spawn(async move {
            let (output, last) = {
                let mut control = pin!(control);
                std::future::poll_fn(|context| {
                    let _polled = Polled::begin();
                    control.as_mut().poll(context).map(|output| (output, taken()))
                })
                .await
            };
            tokio::spawn(end_with(told, last));
            output
        });
        // A task that has been aborted already does not listen.
        let _ = tell.send(task.abort_handle());
        task
    }

    /// Whether others wait while a control runs.
    #[inline]
    pub fn is_in_order(&self) -> bool {
        self.0.course.get().is_some_and(Running::is_in_order)
    }

    /// The same as [`Self::note_alone`], if nobody has to be waited for.
    pub(super) fn note_alone_now(
        &self,
        baton: Option<&Baton>,
        delay: Delay,
        event: impl FnOnce() -> EventKind,
    ) -> Result<EventNumber, impl FnOnce() -> EventKind> {
        let Some(baton) = baton else { return Ok(self.note(delay, event)) };
        let Some(permit) = baton.take_now() else { return Err(event) };
        let number = self.note(delay, event);
        baton.keep(self, permit);
        Ok(number)
    }

    /// Something happens now that is no replay; if it is recorded exactly, when nobody
    /// else runs.
    pub(super) async fn note_alone(
        &self,
        delay: Delay,
        event: impl FnOnce() -> EventKind,
    ) -> EventNumber {
        self.note_alone_with(delay, None, event).await
    }

    /// The same, with what was said if that is recorded.
    pub(super) async fn note_alone_with(
        &self,
        delay: Delay,
        payload: Option<Box<Payload>>,
        event: impl FnOnce() -> EventKind,
    ) -> EventNumber {
        let number = match self.baton() {
            None => self.note_with(delay, payload, event),
            Some(baton) => {
                let permit = baton.take().await;
                let number = self.note_with(delay, payload, event);
                if let Some(permit) = permit {
                    baton.keep(self, permit);
                }
                number
            }
        };
        if let Some(recorder) = self.recorder() {
            recorder.may_be_known().await;
        }
        number
    }
}
