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
//! So far a session lives inside a test: see [`mod@test`].

mod client;
mod control;
mod envelope;
mod process;
mod server;
pub mod test;
pub mod time;

pub use client::Client;
pub use control::{point, spawn};
pub use envelope::Traced;
pub use process::Process;
pub use server::Server;

/// This process, as the environment says: in the session of `DDBX_SESSION`, or in
/// none.
pub fn init(name: &str) -> Process {
    Process::without_session(name)
}
