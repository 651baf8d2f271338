//! Nested calls over every transport of tarpc.

use futures::StreamExt as _;
use tarpc::context::Context;
use tarpc::serde_transport::unix;
use tarpc::server::BaseChannel;
use tarpc::tokio_serde::formats;
use tarpc::transport::channel;

use crate::settings::{everywhere, over_tcp, serve, show, stub};

#[tarpc::service]
trait Store {
    async fn price(item: String) -> Option<u32>;
}

#[derive(Clone)]
struct Shelf;

impl Store for Shelf {
    async fn price(self, _: Context, item: String) -> Option<u32> {
        (item == "tea").then_some(7)
    }
}

#[tarpc::service]
trait Front {
    async fn order(items: Vec<String>) -> Result<u32, String>;
}

#[derive(Clone)]
struct Till<Stub> {
    store: StoreClient<Stub>,
}

impl<Stub: StoreStub + Clone + Send + Sync + 'static> Front for Till<Stub> {
    async fn order(self, context: Context, items: Vec<String>) -> Result<u32, String> {
        let mut total = 0;
        for item in items {
            let price = self.store.price(context, item.clone()).await;
            let price = price.map_err(|error| error.to_string())?;
            total += price.ok_or_else(|| format!("no {item}"))?;
        }
        Ok(total)
    }
}

/// Client, front and store, over two connections of this kind.
macro_rules! nested_over {
    ($transport:expr) => {
        everywhere!(["Ok(7)", "Err(\"no milk\")"], |world| {
            let front = world.process("front");
            let (near, far) = $transport;
            serve!(BaseChannel::with_defaults(far), world.process("store").serve(Shelf.serve()));
            let till = Till { store: StoreClient::from(stub!(front, near)) };
            let (near, far) = $transport;
            serve!(BaseChannel::with_defaults(far), front.serve(till.serve()));
            let client = FrontClient::from(stub!(world.process("client"), near));
            let order = |item: &str| client.order(world.soon(), vec![item.to_owned()]);
            let (tea, milk) = tokio::join!(order("tea"), order("milk"));
            vec![show(tea), show(milk)]
        })
    };
}

/// Both ends of a new connection over a Unix socket.
macro_rules! over_unix {
    ($format:ident) => {{
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let mut listener = unix::listen(&path, formats::$format::default).await.unwrap();
        let near = unix::connect(&path, formats::$format::default).await.unwrap();
        (near, listener.next().await.unwrap().unwrap())
    }};
}

pub async fn in_memory() {
    nested_over!(channel::unbounded());
}

pub async fn in_memory_bounded() {
    nested_over!(channel::bounded(1));
}

pub async fn tcp_bincode() {
    nested_over!(over_tcp!(Bincode));
}

pub async fn tcp_json() {
    nested_over!(over_tcp!(Json));
}

pub async fn unix_bincode() {
    nested_over!(over_unix!(Bincode));
}

pub async fn unix_json() {
    nested_over!(over_unix!(Json));
}
