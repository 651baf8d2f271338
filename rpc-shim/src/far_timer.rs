//! Timers that are far away need not wake anybody when they are set.
//!
//! Where tokio knows of no earlier timer, setting one wakes the thread that waits for sockets, so
//! that it does not wait for too long: a system call here and one there, and often another thread
//! that looks and finds nothing to do. tarpc sets a timer for every request that finds none under
//! way. Those of a session are far away; so one that is always there, and is a little earlier,
//! spares all of that.

use std::cell::RefCell;
use std::future::Future as _;
use std::panic;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::coop::unconstrained;
use tokio::time::sleep;

use crate::deadlines::FAR_AWAY;

/// By so much it is earlier: more than what a message takes to come.
const EARLIER: Duration = Duration::from_secs(3_600);

thread_local! {
    static FIRST: RefCell<Option<Pin<Box<dyn Future<Output = ()>>>>> = const { RefCell::new(None) };
}

/// From now on there is one in the runtime of this thread. To be called where tarpc sets timers:
/// not every runtime has them.
pub(crate) fn is_there() {
    if Handle::try_current().is_err() {
        return;
    }
    // A transport may do elsewhere what others do there. Then it goes on without.
    let set = panic::catch_unwind(|| {
        let mut first = Box::pin(unconstrained(sleep(FAR_AWAY - EARLIER)));
        // It is set when it is first looked at, and nobody waits for it.
        let _ = first.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        first
    });
    if let Ok(first) = set {
        let before = FIRST.try_with(|place| place.replace(Some(first)));
        drop(before);
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    #[test]
    fn a_runtime_without_timers_goes_on_without_one() {
        super::is_there();
        Builder::new_current_thread().build().unwrap().block_on(async { super::is_there() });
    }
}
