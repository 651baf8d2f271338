//! Wrap tarpc clients and servers so that they can be stopped at breakpoints
//! without anything timing out.
//!
//! One line per client and per server:
//!
//! ```
//! # use tarpc::{client, context, server::{self, Channel as _}};
//! # use futures::StreamExt as _;
//! #[tarpc::service]
//! trait World {
//!     async fn hello(name: String) -> String;
//! }
//!
//! #[derive(Clone)]
//! struct HelloServer;
//! impl World for HelloServer {
//!     async fn hello(self, _: context::Context, name: String) -> String {
//!         format!("Hello, {name}!")
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let session = ddbx::test::session().await;
//! let (caller, world) = (session.process("caller"), session.process("world"));
//!
//! let (client_end, server_end) = tarpc::transport::channel::unbounded();
//! let server = server::BaseChannel::with_defaults(server_end);
//! tokio::spawn(server.execute(world.serve(HelloServer.serve())).for_each(|call| async {
//!     tokio::spawn(call);
//! }));
//! let channel = client::new(client::Config::default(), client_end).spawn();
//! let client = WorldClient::from(caller.client(channel));
//!
//! assert_eq!(client.hello(context::current(), "Stim".into()).await.unwrap(), "Hello, Stim!");
//! # }
//! ```
//!
//! In a program of its own a process says [`init`] instead, and the environment says
//! which session it takes part in, if any. A session inside a test is in [`mod@test`].

mod capture;
mod choice;
mod client;
mod connection;
mod control;
mod controls;
mod course;
mod deadlines;
mod envelope;
mod far_timer;
mod homes;
mod init;
pub mod load_balance;
mod methods;
mod naming;
mod point;
mod pool;
mod process;
pub mod rand;
#[cfg(test)]
mod replaying;
mod seats;
mod server;
pub mod sync;
pub mod test;
pub mod time;

pub use choice::choice;
pub use client::Client;
pub use control::spawn;
pub use course::{NotDurable, flush};
pub use init::init;
pub use process::Process;
pub use server::Server;

/// What travels with calls, for fuzzers of the envelope.
#[doc(hidden)]
pub use envelope::{RequestMeta, ResponseMeta, TracedRequest, TracedResponse};

/// What the macros are made of.
#[doc(hidden)]
pub mod __private {
    pub use crate::capture::value;
    pub use crate::point::{block_on, point, values, watch};
}
