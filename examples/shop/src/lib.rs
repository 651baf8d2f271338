//! A small shop, to be debugged with ddbx.
//!
//! Five services and a crowd of customers, each a process of its own:
//!
//! ```text
//! traffic ── buy ──> gateway ── place ──> orders ── lookup ───> registry <─┐
//!                                           ├── authorise ┐                │
//!                                           ├── charge ───┴──> payments    │ renew,
//!                                           └── reserve ──┐       ^        │ every
//!                                                         v       │        │ 100 ms
//!                                                     inventory ──┴ quote ─┘
//! ```
//!
//! Two things make it worth debugging. Every call has 200 ms, and `inventory` has to
//! renew a lease of 400 ms: stop a process with an ordinary debugger and both run out.
//! And `inventory` has an honest race: two orders for the last item may both get it. That
//! is rare, as such things are: `ddbx run -f examples/shop/race.toml --until-fails` finds it.
//!
//! To see it run, from the root of the workspace:
//!
//! ```text
//! export SHOP_DIR=$(mktemp -d)
//! for service in registry payments inventory orders gateway; do
//!     cargo run -q -p ddbx-shop -- $service &
//! done
//! cargo run -q -p ddbx-shop -- traffic --for 5s
//! cargo run -q -p ddbx-shop -- race
//! kill $(jobs -p)
//! ```
//!
//! Each service is one file. What ddbx needs in it is one line per process, per client
//! and per server, and its `spawn` and `sleep` where the order of timers matters.

mod api;
mod error;
mod gateway;
mod inventory;
mod options;
mod orders;
mod payments;
mod race;
mod registry;
mod rendezvous;
mod stop;
mod traffic;

pub use error::Error;
pub use options::Options;
pub use race::{Race, SECOND_AFTER, race};
pub use traffic::{Load, TrafficReport, traffic};

/// The services, in an order in which they can be started: each after those it calls.
pub fn services() -> &'static [&'static str] {
    &["registry", "payments", "inventory", "orders", "gateway"]
}

/// Runs one of the [`services`] in this process until it is told to stop, by SIGTERM
/// or ctrl-c.
pub async fn run(service: &str, options: &Options) -> Result<(), Error> {
    let serving = async {
        match service {
            "registry" => registry::run(options).await,
            "payments" => payments::run(options).await,
            "inventory" => inventory::run(options).await,
            "orders" => orders::run(options).await,
            "gateway" => gateway::run(options).await,
            unknown => Err(Error::NoSuchService(unknown.to_owned())),
        }
    };
    tokio::select! {
        ended = serving => ended,
        () = stop::signalled() => Ok(()),
    }
}
