//! How often a run was told to stop.

use std::io;
use std::sync::Arc;
use std::thread;

use tokio::runtime::Builder;
use tokio::sync::Semaphore;

use crate::central::Interruptions;

/// Counts each time that a run is told to stop, by a signal or otherwise, until a run
/// takes note of it. Between two runs of a search nobody waits, but nothing is lost.
#[derive(Clone)]
pub(crate) struct Stops(Arc<Semaphore>);

impl Stops {
    /// Counts signals from now on, on a thread of its own.
    pub(crate) fn listen() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut signals = {
            let _entered = runtime.enter();
            Interruptions::listen()
        };
        let stops = Self(Arc::new(Semaphore::new(0)));
        let told = stops.clone();
        thread::Builder::new().name("ddbx signals".to_owned()).spawn(move || {
            runtime.block_on(async {
                loop {
                    signals.next().await;
                    told.tell();
                }
            });
        })?;
        Ok(stops)
    }

    /// Tells to stop, once.
    pub(crate) fn tell(&self) {
        self.0.add_permits(1);
    }

    /// Completes once for each time.
    pub(crate) async fn told(self) {
        match self.0.acquire().await {
            Ok(told) => told.forget(),
            // Never closed.
            Err(_) => std::future::pending().await,
        }
    }

    /// Whether a run that begins now would be told to stop at once.
    pub(crate) fn is_told(&self) -> bool {
        self.0.available_permits() > 0
    }
}
