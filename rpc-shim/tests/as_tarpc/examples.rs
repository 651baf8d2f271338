//! After tarpc's examples `readme`, `compression`, `custom_transport` and `tracing`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::{Sink, SinkExt as _, Stream, TryStreamExt as _};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tarpc::ServerError;
use tarpc::client::RpcError;
use tarpc::client::stub::{load_balance, retry};
use tarpc::context::Context;
use tarpc::serde_transport;
use tarpc::server::BaseChannel;
use tarpc::server::request_hook::{self, BeforeRequestList as _};
use tarpc::tokio_serde::formats::Bincode;
use tarpc::tokio_util::codec::length_delimited::LengthDelimitedCodec;
use tokio::net::{UnixListener, UnixStream};

use crate::settings::{connect, everywhere, over_tcp, serve, show, stub};

#[tarpc::service]
trait World {
    async fn hello(name: String) -> String;
}

#[derive(Clone)]
struct Hello;

impl World for Hello {
    async fn hello(self, _: Context, name: String) -> String {
        format!("Hello, {name}!")
    }
}

pub async fn readme() {
    everywhere!(["\"Hello, Stim!\""], |world| {
        let (client, server) = (world.process("client"), world.process("world"));
        let hello = WorldClient::from(connect!(client, server, Hello.serve()));
        vec![show(hello.hello(world.soon(), "Stim".into()).await)]
    });
}

/// A message whose zeros are counted instead of sent.
#[derive(Serialize, Deserialize)]
struct Squeezed(Vec<u8>);

impl Squeezed {
    async fn from_message<T: Serialize>(message: T) -> io::Result<Self> {
        let bytes = bincode::serialize(&message).map_err(io::Error::other)?;
        let mut squeezed = Vec::new();
        for run in bytes.chunk_by(|a, b| *a == 0 && *b == 0) {
            // At most 255 zeros are one run.
            for part in run.chunks(255) {
                squeezed.push(part[0]);
                if part[0] == 0 {
                    squeezed.push(u8::try_from(part.len()).map_err(io::Error::other)?);
                }
            }
        }
        Ok(Self(squeezed))
    }

    async fn into_message<T: DeserializeOwned>(self) -> io::Result<T> {
        let (mut bytes, mut squeezed) = (Vec::new(), self.0.into_iter());
        while let Some(byte) = squeezed.next() {
            let times = if byte == 0 { squeezed.next().unwrap_or(0) } else { 1 };
            bytes.extend(std::iter::repeat_n(byte, times.into()));
        }
        bincode::deserialize(&bytes).map_err(io::Error::other)
    }
}

fn squeezing<In: DeserializeOwned, Out: Serialize>(
    transport: impl Stream<Item = io::Result<Squeezed>> + Sink<Squeezed, Error = io::Error>,
) -> impl Stream<Item = io::Result<In>> + Sink<Out, Error = io::Error> {
    transport.with(Squeezed::from_message).and_then(Squeezed::into_message)
}

/// A layer between tarpc and its transport, as in the example about compression.
pub async fn squeezed() {
    everywhere!(["\"Hello, friend!\""], |world| {
        let (near, far) = over_tcp!(Bincode);
        let server = world.process("world");
        serve!(BaseChannel::with_defaults(squeezing(far)), server.serve(Hello.serve()));
        let hello = WorldClient::from(stub!(world.process("client"), squeezing(near)));
        vec![show(hello.hello(world.soon(), "friend".into()).await)]
    });
}

pub async fn custom_transport() {
    everywhere!(["\"Hello, socket!\""], |world| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let codec = LengthDelimitedCodec::builder();
        let near = UnixStream::connect(&path).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        let near = serde_transport::new(codec.new_framed(near), Bincode::default());
        let far = serde_transport::new(codec.new_framed(far), Bincode::default());
        let server = world.process("world");
        serve!(BaseChannel::with_defaults(far), server.serve(Hello.serve()));
        let hello = WorldClient::from(stub!(world.process("client"), near));
        vec![show(hello.hello(world.soon(), "socket".into()).await)]
    });
}

#[tarpc::service]
trait Add {
    async fn add(x: i32, y: i32) -> i32;
}

#[derive(Clone)]
struct Adder;

impl Add for Adder {
    async fn add(self, _: Context, x: i32, y: i32) -> i32 {
        x + y
    }
}

#[tarpc::service]
trait Double {
    async fn double(x: i32) -> Result<i32, String>;
}

#[derive(Clone)]
struct Doubler<Stub> {
    add: AddClient<Stub>,
}

impl<Stub: AddStub + Clone + Send + Sync + 'static> Double for Doubler<Stub> {
    async fn double(self, context: Context, x: i32) -> Result<i32, String> {
        self.add.add(context, x, x).await.map_err(|error| error.to_string())
    }
}

/// The doubler's adders fail every other time: it asks them in turn, and again.
pub async fn tracing() {
    everywhere!(["Ok(14)"], |world| {
        let doubler = world.process("doubler");
        let fails = Arc::new(AtomicBool::new(true));
        let mut adders = Vec::new();
        for name in ["adder", "adder#2"] {
            let fails = fails.clone();
            let service = request_hook::before()
                .then_fn(move |_: &mut _, _: &_| {
                    let failure = ServerError::new(io::ErrorKind::NotFound, "a gamma ray".into());
                    let fails = fails.fetch_xor(true, Ordering::SeqCst);
                    async move { if fails { Err(failure) } else { Ok(()) } }
                })
                .serving(Adder.serve());
            let (near, far) = over_tcp!(Json);
            serve!(BaseChannel::with_defaults(far), world.process(name).serve(service));
            adders.push(stub!(doubler, near));
        }
        let in_turn = load_balance::RoundRobin::new(adders);
        let again = |outcome: &Result<_, RpcError>, attempts| outcome.is_err() && attempts < 3;
        let add = AddClient::from(retry::Retry::new(in_turn, again));
        let (near, far) = over_tcp!(Json);
        serve!(BaseChannel::with_defaults(far), doubler.serve(Doubler { add }.serve()));
        let double = DoubleClient::from(stub!(world.process("client"), near));
        vec![show(double.double(world.soon(), 7).await)]
    });
}
