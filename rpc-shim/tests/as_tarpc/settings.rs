//! The same scenario in every setting: against tarpc alone, wrapped without a
//! session, wrapped in a session, and in a session that holds every call for a
//! second when it arrives and for another one when it returns.
//!
//! A scenario is written once and compiled for both kinds of world, [`Plain`] and
//! [`Wrapped`], by the macro `everywhere!`.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ddbx::Process;
use ddbx::test::{Breakpoint, Session};
use tarpc::client::{Channel, RpcError};
use tarpc::context::{self, Context};
use tarpc::server::Serve;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// How long every call is held, twice.
const HOLD: Duration = Duration::from_secs(1);

/// A deadline that one hold alone would break.
const SHORTER_THAN_A_HOLD: Duration = Duration::from_millis(900);

/// Where nobody is held a busy machine should not break it either.
const EASY: Duration = Duration::from_secs(5);

/// tarpc alone.
pub struct Plain;

impl Plain {
    /// What stands for a process where nothing is wrapped.
    pub fn process(&self, _name: &str) -> Unwrapped {
        Unwrapped
    }

    /// How long a call may take.
    pub fn time(&self) -> Duration {
        EASY
    }

    /// A context with that deadline.
    pub fn soon(&self) -> Context {
        within(self.time())
    }
}

/// Wraps nothing.
#[derive(Clone)]
pub struct Unwrapped;

impl Unwrapped {
    /// The channel itself.
    pub fn client<Req, Resp>(&self, channel: Channel<Req, Resp>) -> Channel<Req, Resp> {
        channel
    }

    /// The service itself.
    pub fn serve<S: Serve>(&self, service: S) -> S {
        service
    }
}

/// Clients and servers that are wrapped, with or without a session.
pub struct Wrapped {
    // Dropped first: nobody asks for hits when the session is over.
    holder: Option<Holder>,
    session: Option<Session>,
}

impl Wrapped {
    /// Nobody debugs.
    pub fn without_session() -> Self {
        Self { holder: None, session: None }
    }

    /// In a session that holds nobody.
    pub async fn in_session() -> Self {
        Self { holder: None, session: Some(ddbx::test::session().await) }
    }

    /// In a session that holds every call, as it arrives and as it returns.
    pub async fn held() -> Self {
        let session = ddbx::test::session().await;
        let holder = Holder::start(
            ["*:*@arrive", "*:*@return"].map(|place| session.breakpoint_on_call(place)),
        );
        Self { holder: Some(holder), session: Some(session) }
    }

    /// A process of this world.
    pub fn process(&self, name: &str) -> Process {
        match &self.session {
            Some(session) => session.process(name),
            None => Process::without_session(name),
        }
    }

    /// How long a call may take, if nobody holds it.
    pub fn time(&self) -> Duration {
        if self.holder.is_some() { SHORTER_THAN_A_HOLD } else { EASY }
    }

    /// A context with that deadline.
    pub fn soon(&self) -> Context {
        within(self.time())
    }

    /// The scenario is over.
    pub fn end(self) {
        if let Some(holder) = &self.holder {
            assert!(holder.held.load(Ordering::SeqCst) > 0, "no call was held");
        }
    }
}

/// Holds whoever comes, and lets him go when his time is over.
struct Holder {
    held: Arc<AtomicU32>,
    tasks: [JoinHandle<()>; 2],
}

impl Holder {
    fn start(breakpoints: [Breakpoint; 2]) -> Self {
        let held = Arc::new(AtomicU32::new(0));
        let tasks = breakpoints.map(|breakpoint| {
            let held = held.clone();
            tokio::spawn(async move {
                loop {
                    let control = breakpoint.next().await;
                    held.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(async move {
                        tokio::time::sleep(HOLD).await;
                        control.resume();
                    });
                }
            })
        });
        Self { held, tasks }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Tells that it was dropped, for example with the handler that owns it.
pub struct OnDrop(pub Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A context with this deadline.
pub fn within(length: Duration) -> Context {
    let mut context = context::current();
    context.deadline = Instant::now() + length;
    context
}

/// What came of a call, in words that can be compared.
pub fn show<T: Debug>(outcome: Result<T, RpcError>) -> String {
    match outcome {
        Ok(value) => format!("{value:?}"),
        Err(RpcError::Server(error)) => format!("{:?}: {}", error.kind, error.detail),
        // Which of these it is, is a race in tarpc itself.
        Err(RpcError::Send(_) | RpcError::Channel(_) | RpcError::Shutdown) => "gone".to_owned(),
        Err(RpcError::DeadlineExceeded) => "too late".to_owned(),
    }
}

/// Runs a scenario in every setting, all at once; gives what was seen in each.
macro_rules! in_every_setting {
    (|$world:ident| $scenario:block) => {{
        use $crate::settings::{Plain, Wrapped};
        let plain = async {
            let $world = &Plain;
            $scenario
        };
        let run = |world: Wrapped| async move {
            let $world = &world;
            let seen = $scenario;
            world.end();
            seen
        };
        let (in_session, held) = (Wrapped::in_session().await, Wrapped::held().await);
        let seen: (Vec<String>, _, _, _) = tokio::join!(
            Box::pin(plain),
            Box::pin(run(Wrapped::without_session())),
            Box::pin(run(in_session)),
            Box::pin(run(held)),
        );
        [
            ("tarpc alone", seen.0),
            ("without a session", seen.1),
            ("in a session", seen.2),
            ("with every call held", seen.3),
        ]
    }};
}

/// Runs a scenario in every setting: each must see what is expected.
macro_rules! everywhere {
    ($expected:expr, |$world:ident| $scenario:block) => {
        for (setting, seen) in $crate::settings::in_every_setting!(|$world| $scenario) {
            assert_eq!(seen, $expected, "{setting}");
        }
    };
}

/// Serves one connection, every call in a task of its own.
macro_rules! serve {
    ($channel:expr, $service:expr) => {{
        use futures::StreamExt as _;
        use tarpc::server::Channel as _;
        tokio::spawn($channel.execute($service).for_each(|call| async {
            tokio::spawn(call);
        }))
    }};
}

/// A stub in a process, for what is at the other end of a transport.
macro_rules! stub {
    ($process:expr, $transport:expr) => {
        $process.client(tarpc::client::new(tarpc::client::Config::default(), $transport).spawn())
    };
}

/// A stub in one process for a service in another, in memory.
macro_rules! connect {
    ($caller:expr, $callee:expr, $service:expr) => {{
        let (near, far) = tarpc::transport::channel::unbounded();
        let channel = tarpc::server::BaseChannel::with_defaults(far);
        $crate::settings::serve!(channel, $callee.serve($service));
        $crate::settings::stub!($caller, near)
    }};
}

/// Both ends of a new TCP connection, in this format.
macro_rules! over_tcp {
    ($format:ident) => {{
        use futures::StreamExt as _;
        use tarpc::serde_transport::tcp;
        use tarpc::tokio_serde::formats::$format;
        let mut listener = tcp::listen("127.0.0.1:0", $format::default).await.unwrap();
        let near = tcp::connect(listener.local_addr(), $format::default).await.unwrap();
        (near, listener.next().await.unwrap().unwrap())
    }};
}

pub(crate) use {connect, everywhere, in_every_setting, over_tcp, serve, stub};
