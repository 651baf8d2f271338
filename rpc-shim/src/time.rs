//! The application's own timers, in virtual time: a timer that runs out is an event
//! like any other, and does not overtake what it would have come after without a
//! stop. Outside a control, or without a session, all of this is tokio's.

use std::fmt;
use std::future::Future;
use std::ops::{Add, Sub};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use ddbx_protocol::Gate;

use crate::choice::choice;
use crate::control::{self, Control};

/// What a clock on the wall shows. In a control it is recorded, and a replay shows the
/// same (see [`choice`](fn@crate::choice)).
///
/// ```
/// assert!(ddbx::time::now() > std::time::UNIX_EPOCH);
/// ```
pub fn now() -> SystemTime {
    choice("time", SystemTime::now)
}

// A timer is counted when it is asked for, not when it is first polled: the branches of
// a `select!` are polled in the order of dice.

/// Sleeps for a length of virtual time.
pub fn sleep(length: Duration) -> impl Future<Output = ()> + Send {
    let sleeps = control::current().map(|control| {
        let (due, fires) = (control.clock() + length, control.next_timer_fires());
        async move { control.sleep_until(due, fires).await }
    });
    async move {
        match sleeps {
            Some(sleeps) => sleeps.await,
            None => tokio::time::sleep(length).await,
        }
    }
}

/// Sleeps until the control's clock shows this.
pub fn sleep_until(due: Instant) -> impl Future<Output = ()> + Send {
    sleep(due.saturating_duration_since(Instant::now()))
}

/// Gives a future a length of virtual time.
pub fn timeout<F: Future>(
    length: Duration,
    future: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> {
    let timer = control::current().map(|control| (control.next_timer_fires(), control));
    async move {
        let Some((fires, control)) = timer else {
            return tokio::time::timeout(length, future).await.map_err(|_| Elapsed(()));
        };
        let began = control.clock();
        let mut timer = control.arm(began + length, Gate::Deadline);
        tokio::select! {
            biased;
            output = future => Ok(output),
            delay = timer.fired(fires) => {
                control.wake(began, delay);
                Err(Elapsed(()))
            }
        }
    }
}

/// The time of a [`timeout`] was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed(());

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("deadline has elapsed")
    }
}

impl std::error::Error for Elapsed {}

/// Ticks now and then once in every period of virtual time.
pub fn interval(period: Duration) -> Interval {
    assert!(!period.is_zero(), "the period of an interval cannot be zero");
    Interval { next: Instant::now(), period }
}

/// Made by [`interval`].
#[derive(Debug)]
pub struct Interval {
    next: Instant,
    period: Duration,
}

impl Interval {
    /// Waits for the next tick, and says when it was due. Ticks that were missed
    /// come one after the other, as with tokio.
    pub fn tick(&mut self) -> impl Future<Output = Instant> + Send {
        let due = self.next;
        let sleeps = sleep_until(due);
        async move {
            sleeps.await;
            self.next = due + self.period;
            due
        }
    }
}

/// A moment of virtual time, in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(std::time::Instant);

impl Instant {
    /// What the control's clock shows. It is recorded, and a replay, in which sleeps
    /// take no time, shows the same.
    pub fn now() -> Self {
        if let Some(control) = control::on_course() {
            return Self::recorded(&control);
        }
        let now = std::time::Instant::now();
        let delay = control::current().map_or(Duration::ZERO, |control| control.delay().length());
        // A delay that is older than the clock itself cannot be shown.
        Self(now.checked_sub(delay).unwrap_or(now))
    }

    /// After the last one that was recorded, a replay goes on from there.
    fn recorded(control: &Control) -> Self {
        let (own, ahead) =
            (control.clock().as_nanos(), &control.process().controls().recorded_ahead);
        let shown = || own.saturating_add(ahead.load(Ordering::Relaxed));
        let shown = control.choice("instant", shown);
        ahead.fetch_max(shown.saturating_sub(own), Ordering::Relaxed);
        let (origin, length) = (control.satellite().origin(), shown.unsigned_abs());
        let moment = match shown {
            0.. => origin.checked_add(Duration::from_nanos(length)),
            _ => origin.checked_sub(Duration::from_nanos(length)),
        };
        Self(moment.unwrap_or(origin))
    }

    /// How much virtual time has gone by since.
    pub fn elapsed(&self) -> Duration {
        Self::now().saturating_duration_since(*self)
    }

    /// How much later this is; zero if it is not.
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// How much later this is; zero if it is not.
    pub fn duration_since(&self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }

    /// Later by so much, if there is such a moment.
    pub fn checked_add(&self, length: Duration) -> Option<Self> {
        self.0.checked_add(length).map(Self)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, length: Duration) -> Self {
        Self(self.0 + length)
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}
