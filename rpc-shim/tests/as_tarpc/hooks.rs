//! Request hooks, inside the wrapper and around it.

use std::future::{Ready, ready};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tarpc::ServerError;
use tarpc::client::stub::Stub as _;
use tarpc::context::Context;
use tarpc::server::request_hook::{
    self, AfterRequest, BeforeRequest, BeforeRequestList as _, RequestHook as _,
};
use tarpc::server::serve;

use crate::settings::{connect, everywhere, show, stub};

fn dislikes_one(_: &mut Context, number: &u32) -> Ready<Result<(), ServerError>> {
    let disliked = ServerError::new(io::ErrorKind::InvalidInput, format!("not {number}"));
    ready(if *number == 1 { Err(disliked) } else { Ok(()) })
}

pub async fn before() {
    everywhere!(["InvalidInput: not 1", "3"], |world| {
        let service = serve(|_, i: u32| async move { Ok(i + 1) }).before(dislikes_one);
        let client = connect!(world.process("client"), world.process("server"), service);
        let (one, two) = tokio::join!(client.call(world.soon(), 1), client.call(world.soon(), 2));
        vec![show(one), show(two)]
    });
}

/// A hook that every request passes, or none.
#[derive(Clone)]
struct Door {
    open: bool,
    seen: Arc<Mutex<Vec<&'static str>>>,
}

impl Door {
    fn note(&self, what: &'static str) {
        self.seen.lock().unwrap().push(what);
    }
}

impl<Req> BeforeRequest<Req> for Door {
    async fn before(&mut self, _: &mut Context, _: &Req) -> Result<(), ServerError> {
        self.note("before");
        let closed = ServerError::new(io::ErrorKind::PermissionDenied, "closed".into());
        if self.open { Ok(()) } else { Err(closed) }
    }
}

impl<Resp> AfterRequest<Resp> for Door {
    async fn after(&mut self, _: &mut Context, _: &mut Result<Resp, ServerError>) {
        self.note("after");
    }
}

/// What a hook around the wrapper says, no wrapper has seen.
pub async fn before_outside() {
    everywhere!(["8", "PermissionDenied: closed", "[\"before\", \"before\"]"], |world| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut outcomes = Vec::new();
        for open in [true, false] {
            let service = serve(|_, i: u32| async move { Ok(i + 1) });
            let door = Door { open, seen: seen.clone() };
            let service = world.process("server").serve(service).before(door);
            let (near, far) = tarpc::transport::channel::unbounded();
            let channel = tarpc::server::BaseChannel::with_defaults(far);
            crate::settings::serve!(channel, service);
            let client = stub!(world.process("client"), near);
            outcomes.push(show(client.call(world.soon(), 7).await));
        }
        outcomes.push(format!("{:?}", seen.lock().unwrap()));
        outcomes
    });
}

pub async fn before_a_list() {
    everywhere!(["2", "[\"first\", \"second\"]"], |world| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = |what| {
            let seen = seen.clone();
            move |_: &mut Context, _: &u32| {
                seen.lock().unwrap().push(what);
                ready(Ok(()))
            }
        };
        let service = request_hook::before()
            .then(note("first"))
            .then(note("second"))
            .serving(serve(|_, i: u32| async move { Ok(i + 1) }));
        let client = connect!(world.process("client"), world.process("server"), service);
        let outcome = show(client.call(world.soon(), 1).await);
        vec![outcome, format!("{:?}", seen.lock().unwrap())]
    });
}

/// It can change the response.
pub async fn after() {
    everywhere!(["20"], |world| {
        let tenfold = |_: &mut Context, outcome: &mut Result<u32, ServerError>| {
            if let Ok(number) = outcome {
                *number *= 10;
            }
            ready(())
        };
        let service = serve(|_, i: u32| async move { Ok(i + 1) }).after(tenfold);
        let client = connect!(world.process("client"), world.process("server"), service);
        vec![show(client.call(world.soon(), 1).await)]
    });
}

pub async fn before_and_after() {
    everywhere!(["2", "[\"before\", \"handler\", \"after\"]"], |world| {
        let door = Door { open: true, seen: Arc::default() };
        let noted = door.clone();
        let service = serve(move |_, i: u32| async move {
            noted.note("handler");
            Ok(i + 1)
        });
        let service = service.before_and_after(door.clone());
        let client = connect!(world.process("client"), world.process("server"), service);
        let outcome = show(client.call(world.soon(), 1).await);
        vec![outcome, format!("{:?}", door.seen.lock().unwrap())]
    });
}

/// A hook shortens the deadline that the handler sees and hands on.
pub async fn a_shorter_deadline() {
    everywhere!(["\"too late\""], |world| {
        let server = world.process("server");
        let endless = serve(|_, ()| std::future::pending::<Result<(), ServerError>>());
        let endless = connect!(server, world.process("endless"), endless);
        let service =
            serve(move |context, ()| async move { Ok(show(endless.call(context, ()).await)) });
        let service = service.before(|context: &mut Context, (): &()| {
            context.deadline = Instant::now() + Duration::from_millis(100);
            ready(Ok(()))
        });
        let client = connect!(world.process("client"), server, service);
        vec![show(client.call(world.soon(), ()).await)]
    });
}

/// A hook that gives every request a minute.
#[derive(Clone)]
struct Minute;

impl<Req> BeforeRequest<Req> for Minute {
    async fn before(&mut self, context: &mut Context, _: &Req) -> Result<(), ServerError> {
        context.deadline = Instant::now() + Duration::from_secs(60);
        Ok(())
    }
}

/// What a hook around the wrapper makes of the deadline that tarpc was given is not taken for
/// one that is over.
pub async fn another_deadline_outside() {
    everywhere!(["8"], |world| {
        let service = serve(|_, i: u32| async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(i + 1)
        });
        let service = world.process("server").serve(service).before(Minute);
        let (near, far) = tarpc::transport::channel::unbounded();
        let channel = tarpc::server::BaseChannel::with_defaults(far);
        crate::settings::serve!(channel, service);
        let client = stub!(world.process("client"), near);
        vec![show(client.call(world.soon(), 7).await)]
    });
}
