//! Timers on the clocks of controls: deadlines, sleeps, leases.

use std::time::Duration;

use ddbx_protocol::session::HEARTBEAT;
use ddbx_protocol::{Delay, EventKind, Gate, RealTime, VirtualTime};

use super::alarms::Alarm;
use super::pass::{Arrived, Somebody, Visit};
use super::{Captured, Handle};
use crate::logic::strand::Strand;

/// A timer on the clock of a control.
pub struct TimerOf<'a> {
    /// Whose.
    pub who: &'a dyn Somebody,
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
        self.arm_by(timer, || Runs::Set(self.new_alarm()))
    }

    /// The same, with an alarm of one's own.
    pub fn arm_with<'a>(&'a self, timer: TimerOf<'a>, alarm: &'a Alarm) -> Armed<'a> {
        self.arm_by(timer, || Runs::Lent(SetAlarm(alarm)))
    }

    /// In a replay timers run out when they did, and nothing is set.
    fn arm_by<'a>(&'a self, timer: TimerOf<'a>, runs: impl FnOnce() -> Runs<'a>) -> Armed<'a> {
        let runs = match self.is_replay() {
            true => Runs::InTurn(timer.due.since(self.now() - timer.delay)),
            false => runs(),
        };
        let armed = Armed { satellite: self, timer, runs };
        armed.set(Duration::ZERO);
        armed
    }

    /// An alarm that is not set yet.
    pub fn new_alarm(&self) -> Alarm {
        self.0.alarms.take()
    }

    /// What may become of a call besides its events, in a replay: it rings when somebody has to
    /// look out for that. If nothing of the kind was recorded that is when all has happened again.
    pub fn set_in_replay(&self, alarm: &Alarm) {
        alarm.set_for_the_end();
        // Whoever comes to the end after this finds it set.
        if self.replay().is_none_or(|replay| replay.sorts().any() || replay.is_freed()) {
            alarm.has_rung();
        }
    }

    /// Whether this is a replay, and no call in it came to another end than its answer.
    pub fn only_answers(&self) -> bool {
        self.replay().is_some_and(|replay| !replay.sorts().any())
    }

    /// It rings at this moment.
    #[inline]
    pub fn set(&self, alarm: &Alarm, at: RealTime) {
        if self.0.alarms.set(alarm, at) {
            let _ = self.0.wake.send(());
        }
    }
}

/// An alarm that is set until this is dropped.
struct SetAlarm<'a>(&'a Alarm);

impl Drop for SetAlarm<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.unset();
    }
}

/// A timer that is running.
pub struct Armed<'a> {
    satellite: &'a Handle,
    timer: TimerOf<'a>,
    runs: Runs<'a>,
}

/// How it runs.
enum Runs<'a> {
    /// By the clock of its strand.
    Set(Alarm),
    /// The same, with an alarm of somebody else.
    Lent(SetAlarm<'a>),
    /// In a replay, and for so long: it runs out when it did. One that did not is set
    /// when all has happened again.
    InTurn(Duration),
}

impl Runs<'_> {
    fn alarm(&self) -> Option<&Alarm> {
        match self {
            Self::Set(alarm) => Some(alarm),
            Self::Lent(SetAlarm(alarm)) => Some(alarm),
            Self::InTurn(_) => None,
        }
    }
}

impl Armed<'_> {
    /// Waits until it has run out, which is this event; the delay of its strand then.
    pub async fn fired(&mut self, event: impl FnOnce() -> EventKind) -> Delay {
        match self.runs.alarm() {
            Some(alarm) => {
                alarm.rang().await;
                Box::pin(self.comes_due(event)).await
            }
            None => Box::pin(self.has_its_turn(event())).await,
        }
    }

    /// The same of a call's deadline. In a replay in which none passes nobody has to look for
    /// this one: it is set when all has happened again.
    pub async fn expired(&mut self, event: impl FnOnce() -> EventKind) -> Delay {
        if let (Runs::InTurn(_), Some(replay)) = (&self.runs, self.satellite.replay())
            && !replay.sorts().expire
        {
            replay.freed().await;
        }
        self.fired(event).await
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
            let Some(alarm) = self.runs.alarm() else { break };
            alarm.rang().await;
        }
        self.satellite.note_alone(self.timer.delay, event).await;
        self.timer.delay
    }

    async fn passes(&self) -> Delay {
        let TimerOf { who, delay, is_free, .. } = self.timer;
        let gate = self.timer.gate.clone();
        let strand = Strand::new(self.satellite.new_strand(), who.stack(), delay);
        let strand = Strand { is_branch: true, is_free, ..strand };
        let arrived = Arrived { strand, gate, captured: None::<Captured>, conditions: Vec::new() };
        let visit = Visit { who, delay: Some(delay), is_free, inside: None };
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
            self.runs = Runs::Set(self.satellite.new_alarm());
            self.set(Duration::ZERO);
        }
        if let Some(alarm) = self.runs.alarm() {
            alarm.rang().await;
        }
        self.comes_due(|| event).await
    }

    /// Sets it for when it is due, or some time later.
    fn set(&self, more: Duration) {
        if let Some(alarm) = self.runs.alarm() {
            self.satellite.set(alarm, self.timer.due + self.timer.delay + more);
        }
    }
}
