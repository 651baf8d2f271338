//! What the calls of a window were, while they go on: a window begins and ends in the midst
//! of them, so that neither their beginning nor their end is measured.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;

/// The greatest latency that is told from greater ones, in nanoseconds.
const LATENCY_MAX: u64 = 60_000_000_000;

/// Calls that have been answered, and whether there shall be more.
pub struct Tally {
    latencies: Mutex<Histogram<u64>>,
    is_over: AtomicBool,
}

impl Tally {
    pub fn new() -> io::Result<Self> {
        let latencies = Histogram::new_with_bounds(1, LATENCY_MAX, 3).map_err(io::Error::other)?;
        Ok(Self { latencies: Mutex::new(latencies), is_over: AtomicBool::new(false) })
    }

    /// One more call has been answered, after so long.
    pub fn count(&self, nanos: u64) {
        self.lock().saturating_record(nanos);
    }

    /// Forgets what was so far.
    pub fn begin(&self) {
        self.lock().reset();
    }

    /// What was since then. Nobody needs to call any more.
    pub fn end(&self) -> Histogram<u64> {
        let latencies = self.lock().clone();
        self.is_over.store(true, Ordering::Relaxed);
        latencies
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Histogram<u64>> {
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
