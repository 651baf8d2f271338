//! That a control is in a process, and what it does there: it runs, or stands at a gate, waits
//! for a response or sleeps.

use std::borrow::Borrow;
use std::ops::Deref;
use std::sync::atomic::Ordering;

use ddbx_protocol::EventKind;
use ddbx_satellite::driver::Arrival;

use super::{Control, Here};
use crate::seats::{Guest, Left, Vacant};

/// A control is in the process. (Its end is not the end of the last pointer to it:
/// that may be in the hands of somebody who has locked the satellite.)
pub(crate) struct Present(pub(super) Option<Guest<Control>>);

impl Present {
    /// Where the control is, except while it is with its thread.
    #[inline]
    pub(crate) fn slot(&mut self) -> &mut Option<Guest<Control>> {
        &mut self.0
    }
}

impl Deref for Present {
    type Target = Guest<Control>;
    #[inline]
    fn deref(&self) -> &Guest<Control> {
        self.0.as_ref().expect("it is there until it leaves")
    }
}

impl Drop for Present {
    #[inline]
    fn drop(&mut self) {
        let Some(control) = self.0.take() else { return };
        if let Some(alarm) = control.alarm.get() {
            alarm.unset();
        }
        let (key, strand) = (control.key, control.strand);
        match control.leaves() {
            Ok(mut vacant) => {
                let Some(Here { process, .. }) = vacant.what().leave() else { return };
                process.has_lost(key, strand);
                process.controls().seats.keep(vacant);
            }
            Err(control) => {
                // For good: a call that it has started may end later.
                control.elsewhere.fetch_add(1, Ordering::SeqCst);
                control.process().has_lost(key, strand);
            }
        }
    }
}

/// Whoever has looked at it goes last, on a thread that may never need such a place.
impl Left for Control {
    fn is_left(mut vacant: Vacant<Self>) {
        vacant.what().leave();
    }
}

/// A control at a gate.
pub(crate) struct AtGate {
    pub(super) arrival: Arrival,
    pub(super) elsewhere: Elsewhere<Guest<Control>>,
}

impl AtGate {
    pub(crate) fn control(&self) -> &Guest<Control> {
        &self.elsewhere.0
    }

    /// It goes on, now or when it may: that is this event.
    pub(crate) async fn pass(self, event: impl FnOnce() -> EventKind + Send) {
        let control = &self.elsewhere.0;
        let (passed, _) = control.satellite().pass(control.visit(), self.arrival, event).await;
        control.went_on(passed);
    }
}

/// A control stands at a gate, waits for a response or sleeps.
pub(crate) struct Elsewhere<C: Borrow<Control>>(pub(super) C);

impl<C: Borrow<Control>> Drop for Elsewhere<C> {
    #[inline]
    fn drop(&mut self) {
        self.0.borrow().is_in();
    }
}
