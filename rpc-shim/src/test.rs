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

use ddbx_central::driver::{Hit, Session as Central};
use ddbx_central::logic::Command;
use ddbx_protocol::control::{Reply, Request};
use ddbx_protocol::{BreakpointId, StopId};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::course::Wanted as WantedCourse;
use crate::process::Process;

mod replay;

pub use replay::{record, replay};

pub use ddbx_protocol::Scope;
pub use ddbx_protocol::control::{HoldReason, HoldView, Wanted};

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
    let central = Central::start().expect("a thread for the session");
    Session { central, course: WantedCourse::default() }
}

/// How often those on the way to a breakpoint are let pass.
const USHERED: Duration = Duration::from_millis(5);

/// A session inside a test.
pub struct Session {
    central: Central,
    course: WantedCourse,
}

impl Session {
    /// A process of the session. Any number of them can live in one test.
    pub fn process(&self, name: &str) -> Process {
        Process::embedded(name, &self.central, &self.course).expect("a thread for the satellite")
    }

    /// Stops controls at `process:Service.method@event` or `process:point(label)`,
    /// and with them their whole process.
    ///
    /// # Panics
    /// If the spec cannot be read; the message marks the place.
    pub fn breakpoint(&self, spec: &str) -> Breakpoint {
        self.break_at(Wanted { spec: spec.to_owned(), ..Wanted::default() })
    }

    /// The same, but only the control that hits it stops.
    ///
    /// # Panics
    /// If the spec cannot be read; the message marks the place.
    pub fn breakpoint_on_call(&self, spec: &str) -> Breakpoint {
        self.break_at(Wanted { spec: spec.to_owned(), scope: Scope::Call, ..Wanted::default() })
    }

    /// The same as [`Session::breakpoint_on_call`], for those calls for which a
    /// condition holds, such as `args.item == 7`.
    ///
    /// # Panics
    /// If the spec or the condition cannot be read; the message marks the place.
    pub fn breakpoint_if(&self, spec: &str, condition: &str) -> Breakpoint {
        let condition = Some(condition.to_owned());
        let spec = spec.to_owned();
        self.break_at(Wanted { spec, scope: Scope::Call, condition, ..Wanted::default() })
    }

    /// Any breakpoint.
    ///
    /// # Panics
    /// If the spec or the condition cannot be read; the message marks the place.
    pub fn break_at(&self, wanted: Wanted) -> Breakpoint {
        let (hits, heard) = unbounded_channel();
        let tell = move |hit| {
            let _ = hits.send(hit);
        };
        let planted = self.central.plant(wanted, Some(Box::new(tell)));
        let id = planted.unwrap_or_else(|refused| panic!("{refused}")).id;
        Breakpoint { central: self.central.clone(), id, hits: Mutex::new(heard) }
    }

    /// Holds a whole process: nobody enters it, and whoever is inside stops at its
    /// next event. It goes on when the guard is dropped.
    ///
    /// # Panics
    /// If there is no such process.
    pub fn pause(&self, process: &str) -> Paused {
        let request = Request::Pause(Some(process.to_owned()));
        match self.central.request(request) {
            Some(Reply::Done(_)) => {}
            Some(Reply::Refused(why)) => panic!("{why}"),
            other => panic!("the session does not answer: {other:?}"),
        }
        Paused { central: self.central.clone(), process: process.to_owned() }
    }

    /// How many controls stand still now, held or made to wait.
    pub fn standing(&self) -> usize {
        let stops = self.central.stops();
        stops.iter().filter(|(_, reason)| reason.stands()).count()
    }

    /// How many controls are held now, at a breakpoint or with their process.
    pub fn held(&self) -> usize {
        self.central.stops().iter().filter(|(_, reason)| reason.is_users()).count()
    }

    /// Everybody who stands still, and why.
    pub fn holds(&self) -> Vec<HoldView> {
        match self.central.request(Request::Holds) {
            Some(Reply::Holds(holds)) => holds,
            _ => Vec::new(),
        }
    }

    /// Checks that nobody stands still now.
    ///
    /// # Panics
    /// If somebody does; the message says who and why.
    pub fn assert_nothing_held(&self) {
        let holds = self.holds();
        assert!(holds.is_empty(), "somebody stands still: {holds:#?}");
    }

    /// Checks that nobody has stood still since the session began.
    ///
    /// # Panics
    /// If somebody has.
    pub fn assert_nothing_was_held(&self) {
        let so_far = self.central.stops_so_far();
        assert_eq!(so_far, 0, "{so_far} stood still at some time");
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

    /// Waits until so many controls stand at it, in the order in which they came.
    /// Only a breakpoint on calls can hold more than one.
    ///
    /// Nobody on the way there waits for those who have come, as others would:
    /// which order is the right one is for the test to say.
    pub async fn all(&self, number: usize) -> Vec<Held> {
        let mut held = Vec::new();
        while held.len() < number {
            match tokio::time::timeout(USHERED, self.next()).await {
                Ok(next) => held.push(next),
                Err(_) if held.is_empty() => {}
                Err(_) => self.central.usher(self.id),
            }
        }
        held
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
    /// Lets it go on, when its turn comes: not before others that are further
    /// behind and still held.
    pub fn resume(self) {}

    /// Lets it go on anyway, now and at all that it does from here: this is how a
    /// test forces an order that would be rare otherwise.
    pub fn release(self) {
        self.central.command(Command::Force(self.stop));
        // The command to continue that follows finds nobody.
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.central.command(Command::Continue(self.stop));
    }
}

/// A process that is paused, until this is dropped.
#[must_use = "it goes on as soon as this is dropped"]
pub struct Paused {
    central: Central,
    process: String,
}

impl Drop for Paused {
    fn drop(&mut self) {
        self.central.end_pause(&self.process);
    }
}
