//! The control that a task carries.

use std::cell::RefCell;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use ddbx_protocol::{ControlId, EventKind, Gate};
use ddbx_satellite::driver::Captured;
use pin_project_lite::pin_project;
use tokio::task::JoinHandle;

use super::{Control, Present};
use crate::seats::Guest;

thread_local! {
    /// While a task is polled: its control.
    static CURRENT: RefCell<Option<Guest<Control>>> = const { RefCell::new(None) };
}

/// The control of this task, wherever it is.
pub(crate) fn current() -> Option<Guest<Control>> {
    current_if(|_| true)
}

/// The same, if what it does is recorded, shaken or follows a recording.
pub(crate) fn on_course() -> Option<Guest<Control>> {
    current_if(|control| control.satellite().has_course())
}

/// The same, if it is such a one.
#[inline]
pub(super) fn current_if(is_such: impl FnOnce(&Control) -> bool) -> Option<Guest<Control>> {
    let such = |current: &RefCell<Option<Guest<Control>>>| {
        current.borrow().as_ref().filter(|control| is_such(control)).cloned()
    };
    // A thread that ends has no tasks.
    CURRENT.try_with(such).ok().flatten()
}

/// Does something as this control. Meanwhile it is not here, but with the thread: so nothing
/// has to be counted.
#[inline]
pub(crate) fn as_control<T>(control: &mut Option<Guest<Control>>, what: impl FnOnce() -> T) -> T {
    /// They change places, and back again also after a panic.
    struct Back<'a>(&'a mut Option<Guest<Control>>);
    impl Back<'_> {
        #[inline]
        fn change_places(&mut self) {
            let _ = CURRENT.try_with(|current| mem::swap(&mut *current.borrow_mut(), self.0));
        }
    }
    impl Drop for Back<'_> {
        #[inline]
        fn drop(&mut self) {
            self.change_places();
        }
    }
    let mut back = Back(control);
    back.change_places();
    what()
}

pin_project! {
    /// What a control does in a task.
    pub(super) struct Run<F> {
        control: Option<Guest<Control>>,
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for Run<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            // What is dropped may ask whose it is.
            as_control(this.control, || this.future.set(None));
        }
    }
}

impl<F> Run<F> {
    pub(super) fn new(control: Guest<Control>, future: F) -> Self {
        Self { control: Some(control), future: Some(future) }
    }
}

impl<F: Future> Future for Run<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let future = this.future.as_pin_mut().expect("it is there until this is dropped");
        as_control(this.control, || future.poll(context))
    }
}

/// Starts a new control in this process, which takes over the delay of this one. Its
/// name is the same in every run; a second child of one name gets a number. Without
/// a session it is `tokio::spawn`.
pub fn spawn<F>(name: &str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match current() {
        Some(parent) => run_in_task(parent.child(name), Some(parent.id()), future),
        None => tokio::spawn(future),
    }
}

/// Runs a new control in a task of its own.
pub(crate) fn run_in_task<F>(
    control: Present,
    by: Option<ControlId>,
    future: F,
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let start = control.arrive(|| Gate::Spawn, Captured::default);
    let id = control.id();
    let satellite = control.satellite().clone();
    let all = async move {
        start.pass(|| EventKind::Spawned { control: id.clone(), by }).await;
        let output = control.clone().run(future).await;
        let (satellite, delay) = (control.satellite(), control.delay());
        satellite.happens(delay, || EventKind::Ended { control: id }).await;
        output
    };
    satellite.spawn(all)
}
