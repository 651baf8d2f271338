//! What tasks share, used in the same order in a replay: [`Mutex`], [`RwLock`],
//! [`Semaphore`], [`Notify`] and [`mpsc`], as in `tokio::sync`.
//!
//! Whenever a control gets one of them (a lock, a permit, a notification, a message),
//! that is an event of its process. A recording has these events in their order, and in
//! a replay each control waits until it is its turn. Outside a control, and if nothing
//! is recorded or replayed, they are tokio's.
//!
//! What only tries and never waits (`try_lock` and its like) cannot wait for its turn.
//! Where it failed, it fails again in a replay; where it succeeded, it is tried again,
//! and if that fails now, the replay reports that it differs.
//!
//! ```
//! # use std::sync::Arc;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let stock = Arc::new(ddbx::sync::Mutex::new(3));
//! let own = stock.clone();
//! let sale = ddbx::spawn("sale", async move { *own.lock().await -= 1 });
//! sale.await.unwrap();
//! assert_eq!(*stock.lock().await, 2);
//! # }
//! ```

pub mod mpsc;
mod mutex;
mod notify;
mod rwlock;
mod semaphore;
#[cfg(test)]
mod tests;

use std::future::Future;

use ddbx_protocol::{ControlId, EventKind, Shared};
use ddbx_satellite::driver::InTurn;
use serde::{Deserialize, Serialize};

pub use mutex::Mutex;
pub use notify::Notify;
pub use rwlock::RwLock;
pub use semaphore::Semaphore;
pub use tokio::sync::{
    AcquireError, MutexGuard, OwnedSemaphorePermit, RwLockReadGuard, RwLockWriteGuard,
    SemaphorePermit, TryAcquireError, TryLockError,
};

use crate::control::{self, Control};
use crate::seats::Guest;

/// A control wants something that it shares with others.
struct Entry {
    control: Guest<Control>,
    nth: u64,
    what: Shared,
}

/// Why an attempt got nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Refused {
    NotNow,
    Closed,
}

impl Entry {
    /// The next one of this control, if that is recorded or replayed. It is counted when
    /// it is asked for, not when it is first polled: the branches of a `select!` are
    /// polled in the order of dice.
    fn next(what: Shared) -> Option<Self> {
        let control = control::on_course()?;
        let nth = control.next_entry();
        Some(Self { control, nth, what })
    }

    fn event(&self, from: Option<ControlId>) -> EventKind {
        EventKind::Entered {
            control: self.control.id(),
            call: self.control.call(),
            nth: self.nth,
            what: self.what,
            from,
        }
    }

    /// Waits until it may get it; a message, from that sender.
    async fn turn(&self, from: Option<ControlId>) -> InTurn<'_> {
        self.control.satellite().turn(|| self.event(from)).await
    }

    /// It has got it. This is said before others can get it.
    fn happens(&self, turn: InTurn<'_>, from: Option<ControlId>) {
        turn.happens(self.control.delay(), self.event(from));
    }

    /// From whom the message comes that it gets, if it gets one: only in a replay.
    fn sender(&self) -> Option<Option<ControlId>> {
        self.control.satellite().sender(&self.control.id(), self.control.call().as_ref(), self.nth)
    }

    /// Tries to get it without waiting.
    fn attempt<T>(
        &self,
        name: &str,
        attempt: impl FnMut() -> Result<T, Refused>,
        from: impl FnOnce(&T) -> Option<ControlId>,
    ) -> Result<T, Refused> {
        let got = as_recorded(&self.control, name, attempt)?;
        let delay = self.control.delay();
        self.control.satellite().note(delay, || self.event(from(&got)));
        Ok(got)
    }
}

/// Tries something without waiting. In a replay it fails where it failed.
fn as_recorded<T>(
    control: &Control,
    name: &str,
    mut attempt: impl FnMut() -> Result<T, Refused>,
) -> Result<T, Refused> {
    let mut own = None;
    let refused = control.choice(name, || {
        let result = attempt();
        let refused = result.as_ref().err().copied();
        own = Some(result);
        refused
    });
    own.unwrap_or_else(|| refused.map_or_else(attempt, Err))
}

/// Gets something. Before the turn of a replay has come, `get` is not polled.
fn enter<T>(what: Shared, get: impl Future<Output = T>) -> impl Future<Output = T> {
    let entry = Entry::next(what);
    async move {
        let Some(entry) = entry else { return get.await };
        let turn = entry.turn(None).await;
        let got = get.await;
        entry.happens(turn, None);
        got
    }
}

/// Tries to get something.
fn attempt<T>(
    what: Shared,
    name: &str,
    mut attempt: impl FnMut() -> Result<T, Refused>,
) -> Result<T, Refused> {
    match Entry::next(what) {
        Some(entry) => entry.attempt(name, attempt, |_| None),
        None => attempt(),
    }
}

/// Tries to get a lock.
fn try_lock<T>(
    what: Shared,
    name: &str,
    lock: impl Fn() -> Result<T, TryLockError>,
) -> Result<T, TryLockError> {
    attempt(what, name, || lock().map_err(|_| Refused::NotNow)).map_err(|_| is_locked())
}

/// Only tokio can make this error.
fn is_locked() -> TryLockError {
    let mutex = tokio::sync::Mutex::const_new(());
    let _locked = mutex.try_lock();
    mutex.try_lock().map(drop).expect_err("it is locked")
}
