//! Timers on the clocks of controls: deadlines, sleeps, leases.

use std::time::Duration;

use ddbx_protocol::session::HEARTBEAT;
use ddbx_protocol::{ControlId, Delay, EventKind, Gate, RealTime, Standing, VirtualTime};
use tokio::sync::oneshot;

use super::{Core, Handle, TimerOf};
use crate::logic::Verdict;
use crate::logic::strand::{Strand, StrandId};

pub(super) struct Timer {
    strand: Strand,
    control: ControlId,
    gate: Gate,
    due: VirtualTime,
    /// Under which it is found among the due ones.
    at: RealTime,
    fire: oneshot::Sender<Delay>,
}

impl Timer {
    pub(super) fn standing(&self) -> Standing {
        let (gate, control) = (self.gate.clone(), self.control.clone());
        Standing { gate, control, args: None, result: None, awaited: None }
    }
}

impl Handle {
    /// A timer on a strand's clock. Awaiting it yields the strand's delay when it
    /// has run out and was allowed to; dropping it disarms it.
    pub fn arm(&self, timer: TimerOf<'_>) -> Armed {
        let TimerOf { control, stack, delay, due, gate, is_free } = timer;
        let (id, control) = (self.new_strand(), control.clone());
        let strand = Strand { is_branch: true, is_free, ..Strand::new(id, stack.clone(), delay) };
        if self.is_replay() {
            let (handle, length) = (self.clone(), due.since(self.now() - delay));
            return Armed::InTurn(Box::new(Replayed { handle, strand, control, gate, length }));
        }
        self.set(strand, control, gate, due)
    }

    fn set(&self, strand: Strand, control: ControlId, gate: Gate, due: VirtualTime) -> Armed {
        let (fire, fired) = oneshot::channel();
        let (id, at) = (strand.id, due + strand.delay);
        let mut core = self.lock();
        core.timers.insert(id, Timer { strand, control, gate, due, at, fire });
        core.due.insert((at, id), ());
        self.drain(&mut core);
        drop(core);
        Armed::Set { handle: self.clone(), id, fired }
    }

    /// A timer has passed its gate. If its delay has grown while it did not stand
    /// still, central is lost and it is not due yet. A deadline then gets some more
    /// time: others may find out a little later, and what it waits for goes on only
    /// then.
    pub(super) fn ring(&self, core: &mut Core, id: StrandId, delay: Delay) {
        let Some(timer) = core.timers.get_mut(&id) else { return };
        timer.strand.delay = delay;
        if self.now() - delay < timer.due {
            let more = if timer.gate == Gate::Deadline { HEARTBEAT } else { Duration::ZERO };
            timer.at = timer.due + delay + more;
            core.due.insert((timer.at, id), ());
        } else if let Some(timer) = core.timers.remove(&id) {
            let _ = timer.fire.send(delay);
        }
    }

    pub(super) fn disarm(core: &mut Core, id: StrandId) {
        if let Some(timer) = core.timers.remove(&id) {
            core.due.remove(&(timer.at, id));
        }
    }

    pub(super) fn bring_due_timers(&self, core: &mut Core, now: RealTime) {
        while let Some(entry) = core.due.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((_, id), ()) = entry.remove_entry();
            let Some(timer) = core.timers.get(&id) else { continue };
            let (strand, gate) = (timer.strand.clone(), timer.gate.clone());
            if let Verdict::Go(delay) = core.satellite.handle_event(now, &strand, &gate) {
                self.ring(core, id, delay);
            }
        }
    }
}

/// A timer that is running.
pub enum Armed {
    /// By the clock of its strand.
    Set {
        /// Where.
        handle: Handle,
        /// Whose.
        id: StrandId,
        /// Hears when.
        fired: oneshot::Receiver<Delay>,
    },
    /// In a replay: it runs out when it did. One that did not is set when all has
    /// happened again.
    InTurn(Box<Replayed>),
}

/// A timer of a replay.
pub struct Replayed {
    handle: Handle,
    strand: Strand,
    control: ControlId,
    gate: Gate,
    /// How long it runs.
    length: Duration,
}

impl Armed {
    /// Waits until it has run out, which is this event; the delay of its strand then.
    pub async fn fired(&mut self, event: impl FnOnce() -> EventKind) -> Delay {
        match self {
            Self::InTurn(timer) => {
                let kind = event();
                if let Some(delay) = Box::pin(timer.has_its_turn(kind.clone())).await {
                    return delay;
                }
                *self = timer.set();
                Box::pin(self.rings(|| kind)).await
            }
            Self::Set { .. } => self.rings(event).await,
        }
    }

    async fn rings(&mut self, event: impl FnOnce() -> EventKind) -> Delay {
        // If nobody is left to ring it, it never rings.
        let Self::Set { handle, fired, .. } = self else { return std::future::pending().await };
        let Ok(delay) = fired.await else { return std::future::pending().await };
        handle.note_alone(delay, event).await;
        delay
    }
}

impl Replayed {
    /// Waits for its turn; if it was recorded that it runs out, it does.
    async fn has_its_turn(&self, event: EventKind) -> Option<Delay> {
        let turn = self.handle.replay()?.turn(event).await;
        turn.is_recorded().then(|| {
            turn.happens(&self.handle, self.strand.delay);
            self.strand.delay
        })
    }

    /// The same timer by the clock of its strand, from now on.
    fn set(&self) -> Armed {
        let due = (self.handle.now() - self.strand.delay) + self.length;
        self.handle.set(self.strand.clone(), self.control.clone(), self.gate.clone(), due)
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        if let Self::Set { handle, id, .. } = self {
            handle.forget(*id);
        }
    }
}
