//! Those that wait inside the program: when central must know of them, and when not.

use ddbx_protocol::{BreakpointId, Delay, RealTime, Safeguard, Safeguards, StopReason, ToCentral};

use super::{Mode, Output, Satellite};
use crate::logic::strand::{Strand, StrandId};

impl<S: Safeguards> Satellite<S> {
    /// A strand begins to wait inside the program.
    pub fn handle_wait_inside(&mut self, now: RealTime, strand: &Strand) {
        self.inside.insert(now, strand);
        self.register_inside(now);
    }

    /// Nobody stands still any more. Whoever waits inside with the delay of all does
    /// not matter until that changes; by then it may wait for something else.
    pub fn handle_quiet(&mut self) {
        for waiter in self.inside.take_not_behind(self.permit.floor()) {
            if let Some(number) = waiter.number {
                self.send(ToCentral::Gone { number, delay: waiter.strand.delay });
            }
        }
    }

    /// Since when a strand is known to wait inside the program.
    pub fn inside_since(&self, strand: StrandId) -> Option<RealTime> {
        self.inside.since(strand)
    }

    /// Whether nobody is known to wait inside the program.
    pub fn nobody_inside(&self) -> bool {
        self.inside.is_empty()
    }

    /// A strand that waited inside the program goes on, with this delay.
    pub fn handle_wake_inside(&mut self, now: RealTime, strand: StrandId, delay: Delay) -> Delay {
        let Some(waiter) = self.inside.remove(strand) else { return delay };
        let stood = !self.safeguards.on(Safeguard::InsideClockRuns);
        let delay = if stood { waiter.strand.delay + now.since(waiter.since) } else { delay };
        if let Some(number) = waiter.number {
            self.send(ToCentral::Gone { number, delay });
        }
        delay
    }

    /// Tells central of those who wait inside while something affects this
    /// process.
    pub(super) fn register_inside(&mut self, now: RealTime) {
        if !self.attached || !self.safeguards.on(Safeguard::InsideFollowed) {
            return;
        }
        let held = self.stops.users_len() > 0;
        let blocked = self.mode == Mode::Ask || !self.permit.is_quiet() || held;
        // A clock that stands is like a hold that nobody ends.
        let runs = self.safeguards.on(Safeguard::InsideClockRuns);
        let stands = StopReason::Breakpoint(BreakpointId(u32::MAX));
        let reason = if runs { StopReason::Inside } else { stands };
        let outputs = &mut self.outputs;
        let tell = |message| outputs.push_back(Output::Send(message));
        let floor = self.permit.floor();
        self.inside.register(now, blocked, floor, reason, &mut self.next_number, tell);
    }
}
