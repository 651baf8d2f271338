//! A lock for many.

use std::future::Future;

use ddbx_protocol::Shared;
use tokio::sync::{RwLockReadGuard, RwLockWriteGuard, TryLockError};

use super::{enter, try_lock};

/// `tokio::sync::RwLock`; in a replay controls get it in the recorded order.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let price = ddbx::sync::RwLock::new(5);
/// *price.write().await += 1;
/// assert_eq!(*price.read().await, 6);
/// # }
/// ```
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(tokio::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// An unlocked one.
    pub fn new(value: T) -> Self {
        Self(tokio::sync::RwLock::new(value))
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until it can read.
    pub fn read(&self) -> impl Future<Output = RwLockReadGuard<'_, T>> {
        enter(Shared::Read, self.0.read())
    }

    /// Waits until it can write.
    pub fn write(&self) -> impl Future<Output = RwLockWriteGuard<'_, T>> {
        enter(Shared::Write, self.0.write())
    }

    /// Reads if nobody writes.
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        try_lock(Shared::Read, "try_read", || self.0.try_read())
    }

    /// Writes if nobody else has a lock.
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        try_lock(Shared::Write, "try_write", || self.0.try_write())
    }

    /// The value, without a lock: nobody else can have one.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}
