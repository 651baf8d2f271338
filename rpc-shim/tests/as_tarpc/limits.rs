//! Limits of tarpc: requests per server, requests per client, connections per key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::StreamExt as _;
use tarpc::client::{self, stub::Stub as _};
use tarpc::context;
use tarpc::server::incoming::{Incoming as _, spawn_incoming};
use tarpc::server::{self, BaseChannel, Channel as _};
use tarpc::transport::channel;
use tokio::sync::Notify;

use crate::settings::{everywhere, serve, show, stub};

/// Whoever comes while the only place is taken is sent away.
pub async fn concurrent_requests() {
    let expected = ["WouldBlock: server throttled the request.", "1", "3"];
    everywhere!(expected, |world| {
        let (started, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (start, wait) = (started.clone(), go_on.clone());
        let service = server::serve(move |_, number: u32| async move {
            if number == 1 {
                start.notify_one();
                wait.notified().await;
            }
            Ok(number)
        });
        let (near, far) = channel::unbounded();
        let channel = BaseChannel::with_defaults(far).max_concurrent_requests(1);
        serve!(channel, world.process("server").serve(service));
        let client = stub!(world.process("client"), near);
        let (first, context) = (client.clone(), world.soon());
        let first = tokio::spawn(async move { first.call(context, 1).await });
        started.notified().await;
        let second = client.call(world.soon(), 2).await;
        go_on.notify_one();
        let first = first.await.unwrap();
        vec![show(second), show(first), show(client.call(world.soon(), 3).await)]
    });
}

/// A client with room for one call lets the other one queue.
pub async fn requests_in_flight() {
    everywhere!(["1", "2", "1 at a time"], |world| {
        let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let most_seen = most.clone();
        let service = server::serve(move |_, number: u32| async move {
            most_seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(number)
        });
        let (near, far) = channel::unbounded();
        serve!(BaseChannel::with_defaults(far), world.process("server").serve(service));
        let mut config = client::Config::default();
        config.max_in_flight_requests = 1;
        let client = world.process("client").client(client::new(config, near).spawn());
        let call = |number| client.call(context::current(), number);
        let (one, two) = tokio::join!(call(1), call(2));
        let most = most.load(Ordering::SeqCst);
        vec![show(one), show(two), format!("{most} at a time")]
    });
}

/// Of two connections with the same key, the second is closed.
pub async fn channels_per_key() {
    everywhere!(["1", "gone"], |world| {
        let ((near, far), (second_near, second_far)) = (channel::unbounded(), channel::unbounded());
        let service = server::serve(|_, number: u32| async move { Ok(number) });
        let incoming = futures::stream::iter([far, second_far])
            .map(BaseChannel::with_defaults)
            .max_channels_per_key(1, |_| "everybody")
            .execute(world.process("server").serve(service));
        tokio::spawn(spawn_incoming(incoming));
        let process = world.process("client");
        let (first, second) = (stub!(process, near), stub!(process, second_near));
        vec![show(first.call(world.soon(), 1).await), show(second.call(world.soon(), 2).await)]
    });
}
