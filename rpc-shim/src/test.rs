//! Pause inside a test: a whole session in this process.
//!
//! ```
//! # use std::time::Duration;
//! # use tarpc::{client, context, server::{self, Channel as _}};
//! # use futures::StreamExt as _;
//! # #[tarpc::service]
//! # trait Inventory { async fn reserve(item: u32) -> bool; }
//! # #[derive(Clone)]
//! # struct Shelf;
//! # impl Inventory for Shelf {
//! #     async fn reserve(self, _: context::Context, item: u32) -> bool { item == 7 }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let session = ddbx::test::session().await;
//! let (shop, inventory) = (session.process("shop"), session.process("inventory"));
//! # let (client_end, server_end) = tarpc::transport::channel::unbounded();
//! # let server = server::BaseChannel::with_defaults(server_end);
//! # tokio::spawn(server.execute(inventory.serve(Shelf.serve())).for_each(|call| async {
//! #     tokio::spawn(call);
//! # }));
//! # let channel = client::new(client::Config::default(), client_end).spawn();
//! # let client = InventoryClient::from(shop.client(channel));
//! let hit = session.breakpoint("inventory:Inventory.reserve@arrive");
//! let call = tokio::spawn(async move {
//!     let mut within_500_ms = context::current();
//!     within_500_ms.deadline = std::time::Instant::now() + Duration::from_millis(500);
//!     client.reserve(within_500_ms, 7).await
//! });
//! let held = hit.next().await; // it stands now; look at the world as long as you like
//! tokio::time::sleep(Duration::from_millis(900)).await;
//! held.resume();
//! assert!(call.await.unwrap().unwrap(), "no deadline has passed");
//! # }
//! ```

use std::time::Duration;

use ddbx_central::driver::{Hit, Session as Central, Wanted};
use ddbx_central::logic::Command;
use ddbx_protocol::{BreakpointId, Scope, Spec, StopId};
use ddbx_satellite::driver::Handle;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::process::{Process, checked};

/// Starts a session inside this test. When it is dropped, also by a panic, all
/// that it holds goes on.
///
/// # Panics
/// On tokio's paused clock: a session measures real time, and a paused clock would
/// let every timer win against it.
pub async fn session() -> Session {
    let before = tokio::time::Instant::now();
    std::thread::sleep(Duration::from_millis(1));
    assert!(
        tokio::time::Instant::now() > before,
        "ddbx measures real time, and this test runs on tokio's paused clock, on which a timer \
         would win against any answer: remove start_paused"
    );
    Session { central: Central::start().expect("a thread for the session") }
}

/// A session inside a test.
pub struct Session {
    central: Central,
}

impl Session {
    /// A process of the session. Any number of them can live in one test.
    ///
    /// # Panics
    /// If the name is empty, too long, or has characters that names cannot have.
    pub fn process(&self, name: &str) -> Process {
        let index = self.central.number().expect("the session runs");
        let central = self.central.clone();
        let send = move |message| central.hear(index, message);
        let satellite = Handle::start(index, send).expect("a thread");
        let inbox = satellite.inbox();
        let deliver = Box::new(move |message| inbox.deliver(message));
        self.central.join(index, checked(name), deliver);
        Process::in_session(name, satellite, self.central.clone())
    }

    /// Stops controls at `process:Service.method@event` or `process:point(label)`,
    /// and with them their whole process.
    ///
    /// # Panics
    /// If the spec cannot be read; the message marks the place.
    pub fn breakpoint(&self, spec: &str) -> Breakpoint {
        self.breakpoint_of(spec, Scope::Process)
    }

    /// The same, but only the control that hits it stops.
    ///
    /// # Panics
    /// If the spec cannot be read; the message marks the place.
    pub fn breakpoint_on_call(&self, spec: &str) -> Breakpoint {
        self.breakpoint_of(spec, Scope::Call)
    }

    fn breakpoint_of(&self, spec: &str, scope: Scope) -> Breakpoint {
        let spec: Spec = spec.parse().unwrap_or_else(|error| panic!("{error}"));
        let wanted = Wanted { spec, scope, ignore: 0, once: false };
        let (hits, heard) = unbounded_channel();
        let tell = move |hit| {
            let _ = hits.send(hit);
        };
        let id = self.central.plant(wanted, tell).expect("the session runs");
        Breakpoint { central: self.central.clone(), id, hits: Mutex::new(heard) }
    }

    /// How many controls stand still now, held or made to wait.
    pub fn standing(&self) -> usize {
        self.central.stops().len()
    }

    /// How many controls are held now, at a breakpoint or with their process.
    pub fn held(&self) -> usize {
        self.central.stops().iter().filter(|(_, reason)| reason.is_users()).count()
    }

    /// Ends all holds and removes all breakpoints.
    pub fn release_all(&self) {
        self.central.continue_all();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.release_all();
    }
}

/// A breakpoint of a test. Dropping it removes it, and lets go whoever stands at it
/// and was not asked for with [`Breakpoint::next`].
pub struct Breakpoint {
    central: Central,
    id: BreakpointId,
    hits: Mutex<UnboundedReceiver<Hit>>,
}

impl Breakpoint {
    /// Waits until a control stands at it.
    pub async fn next(&self) -> Held {
        let hit = self.hits.lock().await.recv().await.expect("the session runs");
        Held { central: self.central.clone(), stop: hit.stop }
    }
}

impl Drop for Breakpoint {
    fn drop(&mut self) {
        self.central.remove(self.id);
        while let Ok(hit) = self.hits.get_mut().try_recv() {
            self.central.command(Command::Continue(hit.stop));
        }
    }
}

/// A control that stands at a breakpoint. It goes on when this is dropped, so that
/// a test that panics leaves nobody held.
#[must_use = "it goes on as soon as this is dropped"]
pub struct Held {
    central: Central,
    stop: StopId,
}

impl Held {
    /// Lets it go on.
    pub fn resume(self) {}
}

impl Drop for Held {
    fn drop(&mut self) {
        self.central.command(Command::Continue(self.stop));
    }
}
