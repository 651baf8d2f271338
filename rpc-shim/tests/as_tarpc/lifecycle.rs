//! Deadlines, cancellation, and ends that go away.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tarpc::ServerError;
use tarpc::client::stub::Stub as _;
use tarpc::context::Context;
use tarpc::server::{self, BaseChannel};
use tarpc::transport::channel;
use tokio::sync::Notify;

use crate::settings::{OnDrop, connect, everywhere, serve, show, stub, within};

/// A deadline to miss.
const SHORT: Duration = Duration::from_millis(200);

#[tarpc::service]
trait Patience {
    /// Answers at once.
    async fn echo(number: u32) -> u32;
    /// Answers after some time.
    async fn after(millis: u64) -> u64;
    /// Never answers.
    async fn never();
    /// What is left until the deadline, in milliseconds.
    async fn left() -> u64;
    /// Panics.
    async fn panics();
}

/// Tells when a handler that never answers starts, and when it ends.
#[derive(Clone, Default)]
struct Patient {
    started: Arc<Notify>,
    ended: Arc<Notify>,
}

impl Patience for Patient {
    async fn echo(self, _: Context, number: u32) -> u32 {
        number
    }

    async fn after(self, _: Context, millis: u64) -> u64 {
        ddbx::time::sleep(Duration::from_millis(millis)).await;
        millis
    }

    async fn never(self, _: Context) {
        let _ended = OnDrop(self.ended);
        self.started.notify_one();
        std::future::pending().await
    }

    async fn left(self, context: Context) -> u64 {
        let left = context.deadline.saturating_duration_since(Instant::now());
        u64::try_from(left.as_millis()).unwrap()
    }

    async fn panics(self, _: Context) {
        // Without the message that a panic would print.
        resume_unwind(Box::new("on purpose"));
    }
}

/// A patient client of a patient service.
macro_rules! patience {
    ($world:expr, $service:expr) => {{
        let (client, server) = ($world.process("client"), $world.process("server"));
        PatienceClient::from(connect!(client, server, $service.serve()))
    }};
}

/// A handler sees the deadline that it would see if nobody had been held.
pub async fn what_a_handler_sees() {
    everywhere!(["true"], |world| {
        let client = patience!(world, Patient::default());
        let left = client.left(world.soon()).await.map(Duration::from_millis);
        vec![show(left.map(|left| left <= world.time() && left > world.time() / 2))]
    });
}

/// Slow enough to be too late, or not.
pub async fn a_slow_handler() {
    everywhere!(["too late", "100"], |world| {
        let client = patience!(world, Patient::default());
        let (never, slow) =
            tokio::join!(client.never(within(SHORT)), client.after(world.soon(), 100));
        vec![show(never), show(slow)]
    });
}

/// A deadline ends the handler, too.
pub async fn a_deadline_ends_the_handler() {
    everywhere!(["too late"], |world| {
        let service = Patient::default();
        let client = patience!(world, service.clone());
        let never = client.never(world.soon()).await;
        service.ended.notified().await;
        vec![show(never)]
    });
}

pub async fn past_deadline() {
    everywhere!(["too late", "1"], |world| {
        let client = patience!(world, Patient::default());
        let late = client.never(within(Duration::ZERO)).await;
        vec![show(late), show(client.echo(world.soon(), 1).await)]
    });
}

/// Dropping a call ends its handler.
pub async fn a_dropped_call() {
    everywhere!(["1"], |world| {
        let service = Patient::default();
        let client = patience!(world, service.clone());
        let (dropped, context) = (client.clone(), world.soon());
        let call = tokio::spawn(async move { dropped.never(context).await });
        service.started.notified().await;
        call.abort();
        service.ended.notified().await;
        vec![show(client.echo(world.soon(), 1).await)]
    });
}

pub async fn a_timeout_of_the_callers() {
    everywhere!(["true", "1"], |world| {
        let client = patience!(world, Patient::default());
        let never = client.never(world.soon());
        let timed_out = tokio::time::timeout(SHORT, never).await.is_err();
        vec![timed_out.to_string(), show(client.echo(world.soon(), 1).await)]
    });
}

/// The faster one wins and the other one ends.
pub async fn select() {
    everywhere!(["5"], |world| {
        let service = Patient::default();
        let client = patience!(world, service.clone());
        let outcome = {
            let never = std::pin::pin!(client.never(world.soon()));
            let echo = async {
                service.started.notified().await;
                client.echo(world.soon(), 5).await
            };
            match futures::future::select(never, std::pin::pin!(echo)).await {
                futures::future::Either::Left((never, _)) => show(never),
                futures::future::Either::Right((echo, _)) => show(echo),
            }
        };
        service.ended.notified().await;
        vec![outcome]
    });
}

/// A handler that panics never answers; others do.
pub async fn a_panic() {
    everywhere!(["too late", "2"], |world| {
        let client = patience!(world, Patient::default());
        let panicked = client.panics(within(SHORT)).await;
        vec![show(panicked), show(client.echo(world.soon(), 2).await)]
    });
}

pub async fn a_server_that_went() {
    everywhere!(["3", "gone"], |world| {
        let (near, far) = channel::unbounded();
        let server = world.process("server").serve(Patient::default().serve());
        let serving = serve!(BaseChannel::with_defaults(far), server);
        let client = PatienceClient::from(stub!(world.process("client"), near));
        let answered = client.echo(world.soon(), 3).await;
        serving.abort();
        assert!(serving.await.unwrap_err().is_cancelled());
        vec![show(answered), show(client.echo(world.soon(), 4).await)]
    });
}

/// When the last client is dropped, its server ends.
pub async fn a_client_that_went() {
    everywhere!(["4"], |world| {
        let (near, far) = channel::unbounded();
        let server = world.process("server").serve(Patient::default().serve());
        let serving = serve!(BaseChannel::with_defaults(far), server);
        let client = PatienceClient::from(stub!(world.process("client"), near));
        let clone = client.clone();
        drop(client);
        let answered = clone.echo(world.soon(), 4).await;
        drop(clone);
        serving.await.unwrap();
        vec![show(answered)]
    });
}

/// Errors of the service arrive as they are, whatever their kind.
pub async fn errors_of_the_service() {
    everywhere!(["TimedOut: of its own", "Other: number 2"], |world| {
        let service = server::serve(|_, number: u32| async move {
            Err::<u32, _>(match number {
                1 => ServerError::new(io::ErrorKind::TimedOut, "of its own".into()),
                _ => ServerError::new(io::ErrorKind::Other, format!("number {number}")),
            })
        });
        let client = connect!(world.process("client"), world.process("server"), service);
        let (one, two) = tokio::join!(client.call(world.soon(), 1), client.call(world.soon(), 2));
        vec![show(one), show(two)]
    });
}
