//! What can be known of a satellite without keeping it: its clock, and how far its process
//! is behind.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ddbx_protocol::{AllOn, Delay, RealTime, VirtualTime};

use crate::logic::clock;

/// The clock of a process, and the greatest delay in it. Every request takes it along, and
/// to count who has it would cost more than to look at it: so these few words stay for as long
/// as the program. It has few processes.
#[derive(Clone, Copy)]
pub struct Floor(&'static Shared);

struct Shared {
    origin: Instant,
    delay: AtomicU64,
}

impl Floor {
    pub(super) fn new() -> Self {
        Self(Box::leak(Box::new(Shared { origin: Instant::now(), delay: AtomicU64::new(0) })))
    }

    pub(super) fn origin(&self) -> Instant {
        self.0.origin
    }

    #[inline]
    pub(super) fn at(&self, moment: Instant) -> RealTime {
        RealTime::default() + moment.saturating_duration_since(self.0.origin)
    }

    #[inline]
    pub(super) fn delay(&self) -> Delay {
        Delay::from_nanos(self.0.delay.load(Ordering::Acquire))
    }

    pub(super) fn raise(&self, delay: Delay) {
        self.0.delay.store(delay.as_nanos(), Ordering::Release);
    }

    /// The delay of a strand that has waited since its clock showed `began`, and was
    /// woken by nobody knows whom: it is charged as if by whoever is furthest behind.
    #[inline]
    pub fn woken_by_anybody(&self, began: VirtualTime, delay: Delay) -> Delay {
        match self.delay() {
            floor if floor <= delay => delay,
            floor => woken(self.at(Instant::now()), began, delay, floor),
        }
    }
}

pub(super) fn woken(now: RealTime, began: VirtualTime, delay: Delay, floor: Delay) -> Delay {
    let floor = floor.max(delay);
    clock::wake(now, began, now - floor, [delay, floor], &AllOn)
}
