//! Permits.

use std::future::Future;
use std::sync::Arc;

use ddbx_protocol::Shared;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, SemaphorePermit, TryAcquireError};

use super::{Entry, Refused, attempt};

/// `tokio::sync::Semaphore`; in a replay controls get permits in the recorded order.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let tills = ddbx::sync::Semaphore::new(2);
/// let (_one, _two) = (tills.acquire().await.unwrap(), tills.acquire().await.unwrap());
/// assert!(tills.try_acquire().is_err());
/// # }
/// ```
#[derive(Debug)]
pub struct Semaphore {
    permits: Arc<tokio::sync::Semaphore>,
    /// Tells those who wait for their turn that there will be no permit.
    closed: tokio::sync::Notify,
}

impl Semaphore {
    /// One with so many permits.
    ///
    /// # Panics
    /// If there are more than `tokio::sync::Semaphore` can have.
    pub fn new(permits: usize) -> Self {
        let permits = Arc::new(tokio::sync::Semaphore::new(permits));
        Self { permits, closed: tokio::sync::Notify::new() }
    }

    /// Waits for a permit.
    pub fn acquire(&self) -> impl Future<Output = Result<SemaphorePermit<'_>, AcquireError>> {
        self.get(Entry::next(Shared::Permit), self.permits.acquire())
    }

    /// Waits for a permit that can go anywhere.
    pub fn acquire_owned(
        self: Arc<Self>,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> {
        let entry = Entry::next(Shared::Permit);
        async move { self.get(entry, self.permits.clone().acquire_owned()).await }
    }

    /// Takes a permit if there is one.
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        let permit = || self.permits.try_acquire().map_err(refused);
        attempt(Shared::Permit, "try_acquire", permit).map_err(|refused| match refused {
            Refused::NotNow => TryAcquireError::NoPermits,
            Refused::Closed => TryAcquireError::Closed,
        })
    }

    /// Adds permits.
    ///
    /// # Panics
    /// If there are more then than `tokio::sync::Semaphore` can have.
    pub fn add_permits(&self, permits: usize) {
        self.permits.add_permits(permits);
    }

    /// From now on nobody gets a permit, nor those who wait for one.
    pub fn close(&self) {
        self.permits.close();
        self.closed.notify_waiters();
    }

    /// That there was none is no event: so it is not waited for.
    async fn get<P>(
        &self,
        entry: Option<Entry>,
        permit: impl Future<Output = Result<P, AcquireError>>,
    ) -> Result<P, AcquireError> {
        let Some(entry) = entry else { return permit.await };
        let turn = tokio::select! {
            biased;
            turn = entry.turn(None) => turn,
            () = self.is_closed() => return permit.await,
        };
        let permit = permit.await?;
        entry.happens(turn, None);
        Ok(permit)
    }

    async fn is_closed(&self) {
        // It hears of all that is closed from now on.
        let closed = self.closed.notified();
        if !self.permits.is_closed() {
            closed.await;
        }
    }
}

fn refused(error: TryAcquireError) -> Refused {
    match error {
        TryAcquireError::NoPermits => Refused::NotNow,
        TryAcquireError::Closed => Refused::Closed,
    }
}
