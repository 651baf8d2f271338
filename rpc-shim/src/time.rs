//! The application's own timers, in virtual time.

use std::time::Duration;

use crate::control;

/// Sleeps for a length of virtual time: a sleep is an event like any other, and
/// does not end before what it would have come after without a stop. Outside a
/// wrapped handler, or without a session, it is `tokio::time::sleep`.
pub async fn sleep(length: Duration) {
    match control::current() {
        Some(control) => control.sleep(length).await,
        None => tokio::time::sleep(length).await,
    }
}
