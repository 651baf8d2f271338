//! The control that a task carries.

use std::future::Future;
use std::sync::Arc;

use ddbx_protocol::{ControlId, EventKind, Gate};
use ddbx_satellite::driver::Captured;
use tokio::task::JoinHandle;

use super::{Control, Present};

tokio::task_local! {
    pub(super) static CURRENT: Arc<Control>;
}

/// The control of this task, wherever it is.
pub(crate) fn current() -> Option<Arc<Control>> {
    CURRENT.try_with(Arc::clone).ok()
}

/// The same, if what it does is recorded, shaken or follows a recording.
pub(crate) fn on_course() -> Option<Arc<Control>> {
    let on_course =
        |control: &Arc<Control>| control.satellite().has_course().then(|| control.clone());
    CURRENT.try_with(on_course).ok().flatten()
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
