//! The rule as one process sees it.
//!
//! A strand whose clock shows `v` may pass unless a client that is not ahead of
//! it stands still, or one is further behind. Clients elsewhere are known only
//! in sum: the *floor* (the greatest delay of any client so far), the *open*
//! stop that is furthest behind (all that are less far behind block no one whom
//! it does not block), and the *timed* stops, whose delay will have grown to a
//! known value when they go on. All stopped clocks stand still, so who is ahead
//! of whom does not change while both stand.

use ddbx_protocol::{Delay, Permit, Reading, RealTime, StopId, VirtualTime};

/// The rule for one process, in that process's own clock.
#[derive(Clone, Debug, Default)]
pub struct LocalPermit {
    floor: Delay,
    open: Option<(VirtualTime, StopId)>,
    timed: Vec<(VirtualTime, Delay, StopId)>,
    reading: Reading,
}

/// Whether a strand may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Now.
    Go,
    /// When its delay has grown to this.
    When(Delay, Option<StopId>),
    /// Nobody knows when: because of this stop.
    Blocked(StopId),
}

impl LocalPermit {
    /// The greatest delay of any client so far.
    pub fn floor(&self) -> Delay {
        self.floor
    }

    /// Whether nobody elsewhere stands still: then only the floor counts.
    pub fn is_quiet(&self) -> bool {
        self.open.is_none() && self.timed.is_empty()
    }

    /// Raises the floor; true if it rose.
    pub fn raise(&mut self, delay: Delay) -> bool {
        let rises = self.floor < delay;
        self.floor = self.floor.max(delay);
        rises
    }

    /// Takes over what central says.
    pub fn adopt(&mut self, now: RealTime, permit: &Permit) {
        self.raise(permit.floor);
        self.reading.hear(now, permit.sent);
        let read = |clock| self.reading.read(clock);
        self.open = permit.open.map(|open| (read(open.clock), open.by));
        let timed = permit.timed.iter();
        self.timed = timed.map(|t| (read(t.clock), t.leaves_with, t.by)).collect();
        if self.is_quiet() {
            self.reading.forget();
        }
    }

    /// Judges a strand whose clock shows `clock` and whose delay is `delay`.
    pub fn judge(&self, clock: VirtualTime, delay: Delay) -> Judgement {
        if let Some((behind, by)) = self.open
            && behind <= clock
        {
            return Judgement::Blocked(by);
        }
        let (mut demanded, mut because) = (self.floor, None);
        for &(behind, leaves_with, by) in &self.timed {
            if behind <= clock && leaves_with > demanded {
                (demanded, because) = (leaves_with, Some(by));
            }
        }
        if demanded > delay { Judgement::When(demanded, because) } else { Judgement::Go }
    }

    /// The stop elsewhere that is furthest behind with no end in sight.
    pub fn open(&self) -> Option<(VirtualTime, StopId)> {
        self.open
    }

    /// The clock of whoever stands still elsewhere and is furthest behind.
    pub fn furthest_behind(&self) -> Option<VirtualTime> {
        let timed = self.timed.iter().map(|(clock, ..)| *clock);
        self.open.map(|(clock, _)| clock).into_iter().chain(timed).min()
    }

    /// Central is gone: nobody will say how these stops end. Whoever waited for
    /// them goes on as if they had ended now.
    pub fn let_go(&mut self, now: RealTime) {
        let open = self.open.take().map(|(behind, _)| now.delay_of(behind));
        let timed = self.timed.drain(..).map(|(_, leaves_with, _)| leaves_with);
        self.floor = timed.chain(open).fold(self.floor, Delay::max);
        self.reading.forget();
    }
}
