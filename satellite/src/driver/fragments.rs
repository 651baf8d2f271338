//! What a control does between two events is not in a recording. In a replay, and while
//! it is recorded exactly, others wait until it stands again: then what controls share
//! inside the process is used in the order of their events.

use std::cell::RefCell;
use std::pin::Pin;
use std::time::Duration;

use ddbx_protocol::{Delay, EventKind, EventNumber};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::Handle;

/// How long an event waits for another control while it is recorded. One that blocks its
/// thread may wait for this very event: so it must end.
const WAIT_MAX: Duration = Duration::from_millis(20);

/// One at a time.
pub(super) struct Baton(Semaphore);

impl Default for Baton {
    fn default() -> Self {
        Self(Semaphore::new(1))
    }
}

impl Baton {
    /// Waits for it, not for ever.
    async fn take(&self) -> Option<SemaphorePermit<'_>> {
        // Whoever comes to an event has come to the end of what it did before.
        stands();
        match self.0.try_acquire() {
            Ok(permit) => Some(permit),
            Err(_) => Box::pin(timeout(WAIT_MAX, self.0.acquire())).await.ok()?.ok(),
        }
    }
}

thread_local! {
    /// While a control is polled: the satellites by whose events it runs.
    static FRAGMENT: RefCell<Option<Vec<Handle>>> = const { RefCell::new(None) };
}

/// Whether it will be known when the control on this thread stands again.
pub(super) fn begins(satellite: &Handle) -> bool {
    FRAGMENT.with_borrow_mut(|fragment| {
        if let Some(satellites) = fragment {
            satellites.push(satellite.clone());
        }
        fragment.is_some()
    })
}

/// The control on this thread is about to block it: it stands from now on.
pub fn stands() {
    let ran = FRAGMENT.with_borrow_mut(|fragment| fragment.as_mut().map(std::mem::take));
    end(ran.unwrap_or_default());
}

fn end(ran: Vec<Handle>) {
    for satellite in ran {
        match (satellite.replay(), satellite.baton()) {
            (Some(replay), _) => replay.stands(),
            (None, Some(baton)) => baton.0.add_permits(1),
            (None, None) => {}
        }
    }
}

/// Ends a fragment, also by a panic.
struct Polled(Option<Vec<Handle>>);

impl Drop for Polled {
    fn drop(&mut self) {
        end(FRAGMENT.replace(self.0.take()).unwrap_or_default());
    }
}

impl Handle {
    /// Runs all that a control does in this process. It is pinned already: a future that
    /// is handed on takes its room twice.
    pub async fn run<F: Future>(&self, mut control: Pin<&mut F>) -> F::Output {
        let in_order = self.is_replay() || self.baton().is_some();
        std::future::poll_fn(|context| {
            let _polled = in_order.then(|| Polled(FRAGMENT.replace(Some(Vec::new()))));
            control.as_mut().poll(context)
        })
        .await
    }

    /// Something happens now that is no replay; if it is recorded exactly, when nobody
    /// else runs.
    pub(super) async fn note_alone(
        &self,
        delay: Delay,
        event: impl FnOnce() -> EventKind,
    ) -> EventNumber {
        let number = match self.baton() {
            None => self.note(delay, event),
            Some(baton) => {
                let permit = baton.take().await;
                let number = self.note(delay, event);
                if let Some(permit) = permit
                    && begins(self)
                {
                    permit.forget();
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
