//! Scenarios in which it is easy to let a stop be noticed.

use std::io;
use std::sync::Arc;

use crate::settings::{self, OnDrop, connect, everywhere, show, within};
use tarpc::ServerError;
use tarpc::client;
use tarpc::client::stub::Stub as _;
use tarpc::server;
use tokio::sync::Notify;

/// One context for several calls, as in tarpc's example `tracing`, or with `Retry`.
pub async fn one_context_for_several_calls() {
    everywhere!(["2", "3"], |world| {
        let successor = server::serve(|_, i: u32| async move { Ok(i + 1) });
        let client = connect!(world.process("client"), world.process("server"), successor);
        let context = world.soon();
        let first = client.call(context, 1).await;
        vec![show(first), show(client.call(context, 2).await)]
    });
}

/// The same in a handler, with a context of its own.
pub async fn one_context_for_several_calls_in_a_handler() {
    everywhere!(["5"], |world| {
        let front = world.process("front");
        let successor = server::serve(|_, i: u32| async move { Ok(i + 1) });
        let back = connect!(front, world.process("back"), successor);
        let time = world.time();
        let service = server::serve(move |_, i: u32| async move {
            let context = within(time);
            let first = back.call(context, i).await.map_err(failed)?;
            back.call(context, first).await.map_err(failed)
        });
        let client = connect!(world.process("client"), front, service);
        vec![show(client.call(world.soon(), 3).await)]
    });
}

fn failed(error: client::RpcError) -> ServerError {
    ServerError::new(io::ErrorKind::Other, error.to_string())
}

/// A handler waits, by means that ddbx does not see, for another one that is held.
pub async fn a_handler_that_waits_for_one_that_is_held() {
    everywhere!(["0", "1"], |world| {
        let start = Arc::new(Notify::new());
        let service = server::serve(move |_, number: u32| async move {
            if number == 0 {
                start.notified().await;
            } else {
                start.notify_one();
            }
            Ok(number)
        });
        let client = connect!(world.process("client"), world.process("server"), service);
        let (zero, one) = tokio::join!(client.call(world.soon(), 0), client.call(world.soon(), 1));
        vec![show(zero), show(one)]
    });
}

/// The second call waits in tarpc's queue for the first, which is held.
pub async fn a_queue_in_the_client() {
    everywhere!(["1", "2"], |world| {
        let service = server::serve(|_, number: u32| async move { Ok(number) });
        let (near, far) = tarpc::transport::channel::unbounded();
        let channel = tarpc::server::BaseChannel::with_defaults(far);
        settings::serve!(channel, world.process("server").serve(service));
        let mut config = client::Config::default();
        config.max_in_flight_requests = 1;
        let client = world.process("client").client(client::new(config, near).spawn());
        let (one, two) = tokio::join!(client.call(world.soon(), 1), client.call(world.soon(), 2));
        vec![show(one), show(two)]
    });
}

/// A connection is lost when the call has been held: its error comes with less delay
/// than the call has.
pub async fn a_connection_lost_after_a_hold() {
    everywhere!(["gone"], |world| {
        let (started, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (start, end) = (started.clone(), ended.clone());
        let service = server::serve(move |_, (): ()| async move {
            let _end = OnDrop(end);
            start.notify_one();
            std::future::pending::<Result<(), ServerError>>().await
        });
        let (near, far) = tarpc::transport::channel::unbounded();
        let channel = tarpc::server::BaseChannel::with_defaults(far);
        let serving = settings::serve!(channel, world.process("server").serve(service));
        let client = settings::stub!(world.process("client"), near);
        let lost = async {
            started.notified().await;
            serving.abort();
            ended.notified().await;
        };
        let (outcome, ()) = tokio::join!(client.call(world.soon(), ()), lost);
        vec![show(outcome)]
    });
}
