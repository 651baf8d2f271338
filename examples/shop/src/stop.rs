//! When to stop: somebody said so.

use std::future::pending;
use std::io::{self, Read as _};
use std::thread;

use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// Waits for SIGTERM or ctrl-c.
pub(crate) async fn signalled() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => terminate.recv().await,
            // Without a handler the signal ends the process: that will do.
            Err(_) => pending().await,
        }
    };
    tokio::select! {
        _ = terminated => (),
        Ok(()) = ctrl_c() => (),
    }
}

/// Waits until standard input is closed.
pub(crate) async fn stdin_closed() {
    let (closed, told) = oneshot::channel();
    // A thread of its own: tokio would wait for its read to end before it shuts down.
    thread::spawn(move || {
        let mut ignored = [0; 1024];
        let mut stdin = io::stdin().lock();
        while stdin.read(&mut ignored).is_ok_and(|length| length > 0) {}
        let _ = closed.send(());
    });
    let _ = told.await;
}
