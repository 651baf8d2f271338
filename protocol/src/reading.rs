//! Reading clocks that stand in another process.
//!
//! A message says "this clock stood at *v* when mine showed *t*". It arrives some
//! time later, so what the receiver makes of it is late, by more or less each
//! time. Two clocks of one sender, read from two messages, could so change
//! places, and somebody who has waited for one of them could find it ahead of
//! itself. Therefore all clocks of one sender are read with one offset, that of
//! the fastest message so far. What is compared are still only delays: constant
//! skew between machines cancels out. Drift does not, so the offset is forgotten
//! whenever there is nothing to compare.

use std::time::Duration;

use crate::time::{RealTime, VirtualTime};

/// How to read one sender's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// Receiver's clock minus sender's, in nanoseconds; never too small.
    offset: Option<i64>,
}

impl Reading {
    /// A message that was sent at `sent` by the sender's clock arrives now. Says
    /// by how much all earlier readings were too late.
    pub fn hear(&mut self, now: RealTime, sent: RealTime) -> Duration {
        let offset = now.as_nanos().saturating_sub(sent.as_nanos());
        let before = self.offset.unwrap_or(offset);
        self.offset = Some(before.min(offset));
        Duration::from_nanos(before.saturating_sub(offset).max(0) as u64)
    }

    /// One of the sender's clocks, as one of the receiver's.
    pub fn read(&self, clock: VirtualTime) -> VirtualTime {
        VirtualTime::from_nanos(clock.as_nanos().saturating_add(self.offset.unwrap_or(0)))
    }

    /// There is nothing to compare: the next message begins anew.
    pub fn forget(&mut self) {
        self.offset = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_message_does_not_move_a_clock() {
        let mut reading = Reading::default();
        let at = RealTime::from_nanos;
        reading.hear(at(1_010), at(10));
        let first = reading.read(VirtualTime::from_nanos(5));
        reading.hear(at(1_900), at(20));
        assert_eq!(reading.read(VirtualTime::from_nanos(5)), first);
        assert!(reading.read(VirtualTime::from_nanos(6)) > first, "order is kept");
        assert_eq!(reading.hear(at(1_022), at(30)), Duration::from_nanos(8));
        assert!(reading.read(VirtualTime::from_nanos(5)) < first, "a faster one is better");
    }
}
