//! A lock for one.

use std::future::Future;

use ddbx_protocol::Shared;
use tokio::sync::{MutexGuard, TryLockError};

use super::{enter, try_lock};

/// `tokio::sync::Mutex`; in a replay controls get it in the recorded order.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let orders = ddbx::sync::Mutex::new(Vec::new());
/// orders.lock().await.push("apple");
/// assert_eq!(orders.into_inner(), ["apple"]);
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(tokio::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// An unlocked one.
    pub fn new(value: T) -> Self {
        Self(tokio::sync::Mutex::new(value))
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock. Dropping what this returns gives up waiting.
    pub fn lock(&self) -> impl Future<Output = MutexGuard<'_, T>> {
        enter(Shared::Lock, self.0.lock())
    }

    /// Locks it if nobody else has.
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        try_lock(Shared::Lock, "try_lock", || self.0.try_lock())
    }

    /// The value, without a lock: nobody else can have one.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}
