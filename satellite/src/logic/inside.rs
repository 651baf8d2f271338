//! Strands that wait inside the program: for a lock, a queue, a channel.
//!
//! They do not stand still: their clocks run. But whatever affects the process
//! in which they wait may be what they wait for, and so affects all they may
//! enter next. Central is told of them only while something affects the process.

use std::collections::BTreeMap;

use ddbx_protocol::{Delay, RealTime, StopReason, ToCentral};

use super::strand::{Strand, StrandId};

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) strand: Strand,
    pub(super) since: RealTime,
    /// Its number, once central knows of it.
    pub(super) number: Option<u64>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Inside {
    waiters: BTreeMap<StrandId, Waiter>,
}

impl Inside {
    pub(super) fn insert(&mut self, now: RealTime, strand: &Strand) {
        let waiter = Waiter { strand: strand.clone(), since: now, number: None };
        self.waiters.insert(strand.id, waiter);
    }

    pub(super) fn since(&self, strand: StrandId) -> Option<RealTime> {
        self.waiters.get(&strand).map(|waiter| waiter.since)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    pub(super) fn remove(&mut self, strand: StrandId) -> Option<Waiter> {
        self.waiters.remove(&strand)
    }

    /// Takes away those who have this delay, or more.
    pub(super) fn take_not_behind(&mut self, floor: Delay) -> Vec<Waiter> {
        let taken = self.waiters.extract_if(.., |_, waiter| waiter.strand.delay >= floor);
        taken.map(|(_, waiter)| waiter).collect()
    }

    /// Central knows nothing any more.
    pub(super) fn forget_numbers(&mut self) {
        for waiter in self.waiters.values_mut() {
            waiter.number = None;
        }
    }

    /// Tells of those that central does not know yet: all if the process is
    /// blocked, else those that are less delayed than others here.
    pub(super) fn register(
        &mut self,
        now: RealTime,
        blocked: bool,
        floor: Delay,
        reason: StopReason,
        next_number: &mut u64,
        mut tell: impl FnMut(ToCentral),
    ) {
        for waiter in self.waiters.values_mut() {
            if waiter.number.is_none() && (blocked || waiter.strand.delay < floor) {
                *next_number += 1;
                waiter.number = Some(*next_number);
                let (number, stack) = (*next_number, waiter.strand.stack.clone());
                let clock = now - waiter.strand.delay;
                tell(ToCentral::Stopped { number, reason, stack, clock, sent: now });
            }
        }
    }
}
