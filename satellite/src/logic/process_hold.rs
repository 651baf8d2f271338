//! Who holds the whole process: breakpoints of scope `process`, or a pause.

use std::collections::BTreeSet;

use ddbx_protocol::RealTime;

/// While it is on, nobody enters, and whoever is inside stops at its next event.
#[derive(Debug, Default)]
pub(super) struct ProcessHold {
    stops: BTreeSet<u64>,
    paused: bool,
    since: Option<RealTime>,
}

impl ProcessHold {
    pub(super) fn is_on(&self) -> bool {
        self.paused || !self.stops.is_empty()
    }

    /// Since when somebody holds the process.
    pub(super) fn since(&self) -> Option<RealTime> {
        self.since
    }

    /// This stop holds the process from now on.
    pub(super) fn begin(&mut self, now: RealTime, stop: u64) {
        self.stops.insert(stop);
        self.since.get_or_insert(now);
    }

    /// This stop is over; true if that frees the process.
    pub(super) fn end(&mut self, stop: u64) -> bool {
        self.stops.remove(&stop) && self.is_over()
    }

    /// The user pauses the process or ends that; true if that frees the process.
    pub(super) fn pause(&mut self, now: RealTime, pause: bool) -> bool {
        let was_on = self.is_on();
        self.paused = pause;
        if pause {
            self.since.get_or_insert(now);
        }
        was_on && self.is_over()
    }

    fn is_over(&mut self) -> bool {
        if !self.is_on() {
            self.since = None;
        }
        !self.is_on()
    }
}
