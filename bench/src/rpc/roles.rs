//! The server and the client that are measured. Whether what is wrapped is in a session, or
//! recorded, is for the environment to say, as it is with any program.

use std::io;
use std::path::Path;

use ddbx::Process;
use tarpc::client::{Channel, RpcError, stub::Stub};
use tarpc::context::Context;
use tarpc::transport::channel::unbounded;
use tokio::net::UnixStream;

use super::variants::PLANTED;
use crate::peers::args::{ClientArgs, ServerArgs};
use crate::peers::client::{Lanes, calls_with, channel, in_memory, streams};
use crate::peers::server::{Server, execute, runtime, serve, serve_bare, stay};
use crate::peers::transport::Entrance;
use crate::peers::{Door, Lane, Peer as _, PeerClient, PeerRequest, PeerResponse, Transport, pin};

/// Serves all lanes until standard input ends.
pub fn server(args: &ServerArgs) -> io::Result<()> {
    pin::to_one_core()?;
    let runtime = runtime()?;
    let wrapped = [(Lane::Wrapped, ddbx::init("server")), (Lane::Planted, ddbx::init(PLANTED))];
    let doors = runtime.block_on(async {
        let mut doors = serve_bare(&args.directory).await?;
        for (lane, process) in wrapped {
            let (entrance, door) = Entrance::open(lane, &args.directory).await?;
            serve!(entrance, process.serve(Server.serve()));
            doors.push(door);
        }
        io::Result::Ok(doors)
    })?;
    stay(&runtime, &doors)
}

/// Calls as it is told, until standard input ends.
pub fn client(args: &ClientArgs) -> io::Result<()> {
    pin::to_one_core()?;
    let runtime = runtime()?;
    let wrapped = [
        (Lane::Wrapped, ddbx::init("client"), ddbx::init("memory")),
        (Lane::Planted, ddbx::init(PLANTED), ddbx::init(PLANTED)),
    ];
    let lanes = runtime.block_on(async {
        let mut lanes = Lanes::default();
        let doors = args.doors()?;
        lanes.connect_bare(&doors).await?;
        for (lane, caller, callee) in wrapped {
            wrap(&mut lanes, lane, (&caller, &callee), &doors).await?;
        }
        if let Some(third) = &args.third {
            ask(&mut lanes, Path::new(third), &doors).await?;
        }
        io::Result::Ok(lanes)
    })?;
    lanes.obey(&runtime, &args.cpu_of)
}

async fn wrap(
    lanes: &mut Lanes,
    lane: Lane,
    (caller, callee): (&Process, &Process),
    doors: &[Door],
) -> io::Result<()> {
    let (tcp, unix) = streams(door(doors, lane)?).await?;
    let (near, far) = unbounded();
    execute!(far, callee.serve(Server.serve()));
    let memory = tarpc::client::new(Default::default(), near).spawn();
    lanes.insert(Transport::Tcp, lane, PeerClient::from(caller.client(channel!(tcp))));
    lanes.insert(Transport::Unix, lane, PeerClient::from(caller.client(channel!(unix))));
    lanes.insert(Transport::Memory, lane, PeerClient::from(caller.client(memory)));
    Ok(())
}

calls_with!(ddbx::Client<PeerRequest, PeerResponse>);
calls_with!(Asks);

/// The paper's protocol, as cheap as it can be: a third process is asked before each call,
/// and always agrees.
#[derive(Clone)]
struct Asks {
    third: PeerClient,
    channel: Channel<PeerRequest, PeerResponse>,
}

impl Stub for Asks {
    type Req = PeerRequest;
    type Resp = PeerResponse;

    async fn call(&self, ctx: Context, request: PeerRequest) -> Result<PeerResponse, RpcError> {
        self.third.echo(ctx, 0).await?;
        self.channel.call(ctx, request).await
    }
}

async fn ask(lanes: &mut Lanes, third: &Path, doors: &[Door]) -> io::Result<()> {
    let third = PeerClient::from(channel!(UnixStream::connect(third).await?));
    let (tcp, unix) = streams(door(doors, Lane::Bare)?).await?;
    let mut insert = |transport, channel| {
        let asks = Asks { third: third.clone(), channel };
        lanes.insert(transport, Lane::Asks, PeerClient::from(asks));
    };
    insert(Transport::Tcp, channel!(tcp));
    insert(Transport::Unix, channel!(unix));
    insert(Transport::Memory, in_memory());
    Ok(())
}

/// Where the server serves this lane.
pub fn door(doors: &[Door], lane: Lane) -> io::Result<&Door> {
    let door = doors.iter().find(|door| door.lane == lane);
    door.ok_or_else(|| io::Error::other(format!("the server does not serve {lane:?}")))
}
