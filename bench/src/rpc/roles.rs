//! The server and the client that are measured. Whether what is wrapped is in a session, or
//! recorded, is for the environment to say, as it is with any program.

use std::io;

use ddbx::Process;
use tarpc::transport::channel::unbounded;

use super::variants::PLANTED;
use crate::peers::args::{ClientArgs, ServerArgs};
use crate::peers::client::{Lanes, calls_with, channel, door, streams};
use crate::peers::runtimes::Runtimes;
use crate::peers::server::{Server, execute, serve, serve_bare, stay};
use crate::peers::transport::Entrance;
use crate::peers::{
    Door, Flavor, Lane, Peer as _, PeerClient, PeerRequest, PeerResponse, Transport, pin,
};

/// Serves all lanes until standard input ends.
pub fn server(args: &ServerArgs) -> io::Result<()> {
    pin::to_one_core()?;
    let runtimes = Runtimes::start()?;
    let wrapped = [(Lane::Wrapped, ddbx::init("server")), (Lane::Planted, ddbx::init(PLANTED))];
    let mut doors = Vec::new();
    for flavor in Flavor::ALL {
        runtimes.of(flavor).block_on(async {
            doors.extend(serve_bare(flavor, &args.directory).await?);
            for (lane, process) in &wrapped {
                let (entrance, door) = Entrance::open(flavor, *lane, &args.directory).await?;
                serve!(entrance, process.serve(Server.serve()));
                doors.push(door);
            }
            io::Result::Ok(())
        })?;
    }
    stay(&runtimes, &doors)
}

/// Calls as it is told, until standard input ends.
pub fn client(args: &ClientArgs) -> io::Result<()> {
    pin::to_one_core()?;
    let runtimes = Runtimes::start()?;
    let wrapped = [
        (Lane::Wrapped, ddbx::init("client"), ddbx::init("memory")),
        (Lane::Planted, ddbx::init(PLANTED), ddbx::init(PLANTED)),
    ];
    let (doors, mut lanes) = (args.doors()?, Lanes::default());
    for flavor in Flavor::ALL {
        runtimes.of(flavor).block_on(async {
            lanes.connect_bare(flavor, &doors).await?;
            for (lane, caller, callee) in &wrapped {
                let door = door(&doors, flavor, *lane)?;
                wrap(&mut lanes, door, (caller, callee)).await?;
            }
            io::Result::Ok(())
        })?;
    }
    lanes.obey(&runtimes, &args.cpu_of)
}

async fn wrap(
    lanes: &mut Lanes,
    door: &Door,
    (caller, callee): (&Process, &Process),
) -> io::Result<()> {
    let (tcp, unix) = streams(door).await?;
    let (near, far) = unbounded();
    execute!(far, callee.serve(Server.serve()));
    let memory = tarpc::client::new(Default::default(), near).spawn();
    let mut insert = |transport, client| {
        lanes.insert((door.flavor, transport, door.lane), PeerClient::from(client));
    };
    insert(Transport::Tcp, caller.client(channel!(tcp)));
    insert(Transport::Unix, caller.client(channel!(unix)));
    insert(Transport::Memory, caller.client(memory));
    Ok(())
}

calls_with!(ddbx::Client<PeerRequest, PeerResponse>);
