//! What a test tells a program to do while it runs.

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::{panic, process, thread};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

/// What is on standard input, line by line. It is read on a plain thread: tokio's own way
/// would keep the runtime from shutting down while nothing comes.
pub(super) fn lines() -> UnboundedReceiver<String> {
    let (sender, lines) = unbounded_channel();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// From now on a panic ends the process where it happens. That is all that `panic=abort`
/// does: there, too, the hook runs and then nothing else.
pub(super) fn abort_on_panic() {
    panic::set_hook(Box::new(|_| process::abort()));
}

/// What walks were told so far, by name. An order may come before the walk that it is for.
#[derive(Clone, Default)]
pub(super) struct Orders(watch::Sender<BTreeMap<String, Order>>);

#[derive(Clone, Copy)]
enum Order {
    Go,
    Panic,
}

impl Orders {
    /// This walk may go on.
    pub(super) fn go(&self, name: &str) {
        self.give(name, Order::Go);
    }

    /// This walk shall panic.
    pub(super) fn panic(&self, name: &str) {
        self.give(name, Order::Panic);
    }

    fn give(&self, name: &str, order: Order) {
        self.0.send_modify(|orders| {
            // The first one counts: whoever was told to panic does.
            orders.entry(name.to_owned()).or_insert(order);
        });
    }

    /// Waits until a walk is told something, and does it.
    pub(super) async fn obeyed(&self, name: &str) {
        let mut orders = self.0.subscribe();
        let told = orders.wait_for(|orders| orders.contains_key(name)).await;
        if let Some(Order::Panic) = told.ok().and_then(|orders| orders.get(name).copied()) {
            panic!("as ordered");
        }
    }
}
