//! Timers on the clocks of controls: deadlines, sleeps, leases.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use ddbx_protocol::session::HEARTBEAT;
use ddbx_protocol::{Delay, EventKind, Gate, Stack, VirtualTime};

use super::alarms::Alarm;
use super::pass::{Arrived, Named, Visit};
use super::{Captured, Handle};
use crate::logic::strand::Strand;

/// A timer on the clock of a control.
pub struct TimerOf<'a> {
    /// Whose.
    pub control: &'a dyn Named,
    /// Where the control may still have an effect.
    pub stack: &'a Stack,
    /// Its delay.
    pub delay: Delay,
    /// When the timer runs out.
    pub due: VirtualTime,
    /// What happens then.
    pub gate: Gate,
    /// Whether the rule does not concern it: a sleep of a control that the user has
    /// let go on anyway.
    pub is_free: bool,
}

impl Handle {
    /// A timer on a strand's clock. Awaiting it yields the strand's delay when it
    /// has run out and was allowed to; dropping it disarms it.
    pub fn arm<'a>(&'a self, timer: TimerOf<'a>) -> Armed<'a> {
        let runs = match self.is_replay() {
            true => Runs::InTurn(timer.due.since(self.now() - timer.delay)),
            false => Runs::Set(self.0.alarms.take()),
        };
        let armed = Armed { satellite: self, timer, runs };
        armed.set(Duration::ZERO);
        armed
    }
}

/// What a future comes to before the moment of a timer has come. Then, and in a replay,
/// there is more to it: see [`Armed::fired`].
pub async fn before<F: Future>(timer: &Armed<'_>, mut future: Pin<&mut F>) -> Option<F::Output> {
    let Runs::Set(alarm) = &timer.runs else { return None };
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => alarm.poll_rang(context).map(|()| None),
    })
    .await
}

/// A timer that is running.
pub struct Armed<'a> {
    satellite: &'a Handle,
    timer: TimerOf<'a>,
    runs: Runs,
}

enum Runs {
    /// By the clock of its strand.
    Set(Alarm),
    /// In a replay, and for so long: it runs out when it did. One that did not is set
    /// when all has happened again.
    InTurn(Duration),
}

impl Armed<'_> {
    /// Waits until it has run out, which is this event; the delay of its strand then.
    pub async fn fired(&mut self, event: impl FnOnce() -> EventKind) -> Delay {
        match &self.runs {
            Runs::Set(alarm) => {
                alarm.rang().await;
                Box::pin(self.comes_due(event)).await
            }
            Runs::InTurn(_) => Box::pin(self.has_its_turn(event())).await,
        }
    }

    /// It passes its gate. If its delay has grown while it did not stand still, central
    /// is lost and it is not due yet. A deadline then gets some more time: others may
    /// find out a little later, and what it waits for goes on only then.
    async fn comes_due(&mut self, event: impl FnOnce() -> EventKind) -> Delay {
        loop {
            self.timer.delay = self.passes().await;
            if self.satellite.now() - self.timer.delay >= self.timer.due {
                break;
            }
            let is_deadline = self.timer.gate == Gate::Deadline;
            self.set(if is_deadline { HEARTBEAT } else { Duration::ZERO });
            let Runs::Set(alarm) = &self.runs else { break };
            alarm.rang().await;
        }
        self.satellite.note_alone(self.timer.delay, event).await;
        self.timer.delay
    }

    async fn passes(&self) -> Delay {
        let TimerOf { control, stack, delay, is_free, .. } = self.timer;
        let gate = self.timer.gate.clone();
        let strand = Strand::new(self.satellite.new_strand(), stack.clone(), delay);
        let strand = Strand { is_branch: true, is_free, ..strand };
        let arrived = Arrived { strand, gate, captured: None::<Captured>, conditions: Vec::new() };
        let visit = Visit { control, stack, delay: Some(delay), is_free, inside: None };
        self.satellite.stand(visit, arrived).await.delay
    }

    /// Waits for its turn; if it was recorded that it runs out, it does.
    async fn has_its_turn(&mut self, event: EventKind) -> Delay {
        if let Some(replay) = self.satellite.replay() {
            let turn = replay.turn(event.clone()).await;
            if turn.is_recorded() {
                turn.happens(self.satellite, self.timer.delay);
                return self.timer.delay;
            }
        }
        if let Runs::InTurn(length) = self.runs {
            self.timer.due = (self.satellite.now() - self.timer.delay) + length;
            self.runs = Runs::Set(self.satellite.0.alarms.take());
            self.set(Duration::ZERO);
        }
        if let Runs::Set(alarm) = &self.runs {
            alarm.rang().await;
        }
        self.comes_due(|| event).await
    }

    /// Sets it for when it is due, or some time later.
    fn set(&self, more: Duration) {
        let Runs::Set(alarm) = &self.runs else { return };
        let at = self.timer.due + self.timer.delay + more;
        if self.satellite.0.alarms.set(alarm, at) {
            let _ = self.satellite.0.wake.send(());
        }
    }
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        if let Runs::Set(alarm) = &self.runs {
            self.satellite.0.alarms.give_back(alarm);
        }
    }
}
