//! Those that the rule makes wait: when they may go on, and what they are charged.

use ddbx_protocol::{Delay, RealTime, Safeguard, Safeguards};

use super::{Mode, Satellite};
use crate::logic::permit::Judgement;

impl<S: Safeguards> Satellite<S> {
    /// Lets go whatever the rule lets go, furthest behind first, and finds out
    /// when to look again. Where one is blocked, so are all that are not behind it.
    pub(super) fn pump(&mut self, now: RealTime) {
        if self.mode == Mode::Ask {
            return;
        }
        self.next_due = None;
        // Who is further behind is due earlier, so the first that is not due, or is
        // blocked, ends the search.
        let again_and_again = self.safeguards.on(Safeguard::Reevaluation);
        let mut last = None;
        while let Some((clock, number)) = self.stops.next_waiting(last) {
            last = Some((clock, number));
            let Some(stop) = self.stops.get(number) else { continue };
            let least = stop.least;
            let judgement = match stop.judged_once {
                Some(demanded) => Judgement::When(demanded, None),
                None if !self.is_gated(&stop.gate) => Judgement::Go,
                None => self.judge(clock, least, Some(number)),
            };
            let demanded = match judgement {
                Judgement::Go => least,
                Judgement::When(demanded, _) if now >= clock + demanded => demanded,
                Judgement::When(demanded, _) => {
                    self.look_again_at(clock + demanded);
                    if again_and_again {
                        break;
                    }
                    continue;
                }
                Judgement::Blocked(_) if again_and_again => break,
                Judgement::Blocked(_) => continue,
            };
            let charged = !self.safeguards.on(Safeguard::LatencyNotCharged);
            let delay = if charged { stop.grown(now) } else { demanded };
            self.pass_gate(now, number, delay);
            if !self.safeguards.on(Safeguard::TiesTogether) {
                break;
            }
        }
        for number in std::mem::take(&mut self.changed) {
            if self.stops.get(number).is_some_and(|stop| !stop.reason.is_users()) {
                self.tell(now, number);
            }
        }
    }

    pub(super) fn look_again_at(&mut self, due: RealTime) {
        self.next_due = Some(self.next_due.map_or(due, |earlier| earlier.min(due)));
    }

    /// Somebody that was waited for is gone without a word: all that nothing
    /// else blocks go on now, with the delay they would have reached.
    pub(super) fn go_on_at_once(&mut self, now: RealTime) {
        for number in self.stops.waiting() {
            let Some(stop) = self.stops.get(number) else { continue };
            match self.judge(stop.clock, stop.least, Some(number)) {
                Judgement::Go => self.pass_gate(now, number, stop.least),
                Judgement::When(demanded, _) => self.pass_gate(now, number, demanded),
                Judgement::Blocked(_) => {}
            }
        }
    }

    /// The delay that a stop has reached, as far as anything demands it: others
    /// have waited for it and were charged as much.
    pub(super) fn charged_so_far(&self, now: RealTime, number: u64) -> Delay {
        let Some(stop) = self.stops.get(number) else { return Delay::ZERO };
        if stop.reason.is_users() || self.mode == Mode::Ask {
            return stop.grown(now);
        }
        match self.judge(stop.clock, stop.least, Some(number)) {
            Judgement::Go => stop.least,
            Judgement::When(demanded, _) => stop.grown(now).min(demanded),
            Judgement::Blocked(_) => stop.grown(now),
        }
    }
}
