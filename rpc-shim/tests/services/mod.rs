//! Services for the tests of the shim.

#![allow(dead_code, unused_macros, unused_imports, missing_docs)]

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tarpc::context::{self, Context};
use tokio::sync::Semaphore;

#[tarpc::service]
pub trait SlowService {
    /// Waits for so many milliseconds of virtual time.
    async fn wait(millis: u64) -> u64;
    /// Passes a point, then notes the number.
    async fn count(number: u32);
}

pub use SlowServiceClient as SlowClient;

#[derive(Clone)]
pub struct Slow {
    pub order: Arc<Mutex<Vec<u32>>>,
    pub dropped: Arc<AtomicU32>,
    pub started: Arc<Semaphore>,
}

impl Default for Slow {
    fn default() -> Self {
        Self {
            order: Arc::default(),
            dropped: Arc::default(),
            started: Arc::new(Semaphore::new(0)),
        }
    }
}

struct CountsDrops(Arc<AtomicU32>);

impl Drop for CountsDrops {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl SlowService for Slow {
    async fn wait(self, _: Context, millis: u64) -> u64 {
        let _counts = CountsDrops(self.dropped.clone());
        self.started.add_permits(1);
        if millis > 0 {
            ddbx::time::sleep(Duration::from_millis(millis)).await;
        }
        millis
    }

    async fn count(self, _: Context, number: u32) {
        ddbx::point!("counted", number = number).await;
        self.order.lock().unwrap().push(number);
    }
}

#[tarpc::service]
pub trait Front {
    async fn ask(millis: u64) -> u64;
}

#[derive(Clone)]
pub struct Shop {
    pub inner: SlowServiceClient<ddbx::Client<SlowServiceRequest, SlowServiceResponse>>,
}

impl Front for Shop {
    async fn ask(self, ctx: Context, millis: u64) -> u64 {
        self.inner.wait(ctx, millis).await.unwrap()
    }
}

#[tarpc::service]
pub trait Lab {
    /// Does what the test wants.
    async fn act(number: u64) -> u64;
    /// Answers with what it was given.
    async fn pay(order: Order) -> Order;
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub item: u32,
    pub card: String,
    pub gifts: Vec<Order>,
}

/// A handler that each test writes for itself.
#[derive(Clone)]
pub struct Actor(Arc<dyn Fn(Context, u64) -> BoxFuture<'static, u64> + Send + Sync>);

impl Actor {
    pub fn new<F, A>(act: F) -> Self
    where
        F: Fn(Context, u64) -> A + Send + Sync + 'static,
        A: Future<Output = u64> + Send + 'static,
    {
        Self(Arc::new(move |ctx, number| act(ctx, number).boxed()))
    }

    /// One that only answers.
    pub fn echo() -> Self {
        Self::new(|_, number| async move { number })
    }
}

impl Lab for Actor {
    async fn act(self, ctx: Context, number: u64) -> u64 {
        (self.0)(ctx, number).await
    }

    async fn pay(self, _: Context, order: Order) -> Order {
        ddbx::watch!(card = order.card, paid = order);
        ddbx::point!("paying", order = order).await;
        order
    }
}

pub const MS: Duration = Duration::from_millis(1);

/// Waits until something is so.
pub async fn until(mut is_so: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < patience, "it does not come about");
        tokio::time::sleep(MS).await;
    }
}

/// A context with this deadline.
pub fn within(length: Duration) -> Context {
    let mut context = context::current();
    context.deadline = Instant::now() + length;
    context
}

/// A client of a service, both wrapped, in memory.
macro_rules! connect {
    ($client:ident, $caller:expr, $callee:expr, $service:expr) => {
        connect!($client, $caller, $callee, $service, tarpc::transport::channel::unbounded())
    };
    ($client:ident, $caller:expr, $callee:expr, $service:expr, $ends:expr) => {{
        use futures::StreamExt as _;
        use tarpc::server::Channel as _;
        #[allow(unused_imports)]
        use $crate::services::{Front as _, Lab as _, SlowService as _};
        let (client_end, server_end) = $ends;
        let server = tarpc::server::BaseChannel::with_defaults(server_end);
        let calls = server.execute($callee.serve($service.serve()));
        tokio::spawn(calls.for_each(|call| async {
            tokio::spawn(call);
        }));
        let config = tarpc::client::Config::default();
        let channel = tarpc::client::new(config, client_end).spawn();
        $client::from($caller.client(channel))
    }};
}
pub(crate) use connect;
