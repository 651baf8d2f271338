//! The application's own timers, in virtual time: a timer that runs out is an event
//! like any other, and does not overtake what it would have come after without a
//! stop. Outside a control, or without a session, all of this is tokio's.

use std::fmt;
use std::future::Future;
use std::ops::{Add, Sub};
use std::time::Duration;

use ddbx_protocol::Gate;

use crate::control;

/// Sleeps for a length of virtual time.
pub async fn sleep(length: Duration) {
    match control::current() {
        Some(control) => control.sleep_until(control.clock() + length).await,
        None => tokio::time::sleep(length).await,
    }
}

/// Sleeps until the control's clock shows this.
pub async fn sleep_until(due: Instant) {
    sleep(due.saturating_duration_since(Instant::now())).await;
}

/// Gives a future a length of virtual time.
pub async fn timeout<F: Future>(length: Duration, future: F) -> Result<F::Output, Elapsed> {
    let Some(control) = control::current() else {
        return tokio::time::timeout(length, future).await.map_err(|_| Elapsed(()));
    };
    let began = control.clock();
    let mut timer = control.arm(began + length, Gate::Deadline);
    tokio::select! {
        biased;
        output = future => Ok(output),
        delay = timer.fired(control.next_timer_fires()) => {
            control.wake(began, delay);
            Err(Elapsed(()))
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
    pub async fn tick(&mut self) -> Instant {
        let due = self.next;
        sleep_until(due).await;
        self.next = due + self.period;
        due
    }
}

/// A moment of virtual time, in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(std::time::Instant);

impl Instant {
    /// What the control's clock shows.
    pub fn now() -> Self {
        let now = std::time::Instant::now();
        let delay = control::current().map_or(Duration::ZERO, |control| control.delay().length());
        // A delay that is older than the clock itself cannot be shown.
        Self(now.checked_sub(delay).unwrap_or(now))
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
