//! How the processes find each other: whoever listens writes its address to a file, and
//! says so. Whoever needs it is started after that.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use ddbx::Process;
use futures::{Stream, StreamExt as _};
use serde::{Serialize, de::DeserializeOwned};
use tarpc::client::{self, Channel};
use tarpc::serde_transport::Transport;
use tarpc::server::BaseChannel;
use tarpc::tokio_serde::{Deserializer, Serializer};
use tarpc::{ClientMessage, Response};
use tokio::net::{TcpListener, TcpStream};

/// A process, and where it meets the others.
pub struct Stage {
    dir: PathBuf,
    pub process: Process,
}

impl Stage {
    pub fn new(dir: &Path, process: Process) -> Self {
        Self { dir: dir.to_owned(), process }
    }

    /// A channel to whoever listens under this name.
    pub async fn connect<Req, Resp, Codec>(&self, name: &str, codec: Codec) -> Channel<Req, Resp>
    where
        Req: Serialize + Send + 'static,
        Resp: DeserializeOwned + Send + 'static,
        Codec: Serializer<ClientMessage<Req>> + Deserializer<Response<Resp>> + Send + 'static,
        io::Error: From<<Codec as Serializer<ClientMessage<Req>>>::Error>
            + From<<Codec as Deserializer<Response<Resp>>>::Error>,
    {
        let address = fs::read_to_string(self.file(name)).expect("somebody listens");
        let stream = TcpStream::connect(address).await.expect("somebody listens");
        let _ = stream.set_nodelay(true);
        client::new(client::Config::default(), Transport::from((stream, codec))).spawn()
    }

    /// Serves whoever connects, for ever.
    pub async fn serve<Req, Resp, Codec, Calls>(
        &self,
        name: &str,
        mut codec: impl FnMut() -> Codec,
        execute: impl Fn(
            BaseChannel<Req, Resp, Transport<TcpStream, ClientMessage<Req>, Response<Resp>, Codec>>,
        ) -> Calls,
    ) where
        Req: DeserializeOwned + Send + 'static,
        Resp: Serialize + Send + 'static,
        Codec: Serializer<Response<Resp>> + Deserializer<ClientMessage<Req>> + Send + 'static,
        io::Error: From<<Codec as Serializer<Response<Resp>>>::Error>
            + From<<Codec as Deserializer<ClientMessage<Req>>>::Error>,
        Calls: Stream<Item: Future<Output = ()> + Send + 'static> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let draft = self.file(name).with_extension("draft");
        let address = listener.local_addr().expect("an address").to_string();
        fs::write(&draft, address)
            .and_then(|()| fs::rename(&draft, self.file(name)))
            .expect("a disk");
        println!("listening");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let _ = stream.set_nodelay(true);
            let channel = BaseChannel::with_defaults(Transport::from((stream, codec())));
            tokio::spawn(execute(channel).for_each(async |call| drop(tokio::spawn(call))));
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.addr"))
    }
}
