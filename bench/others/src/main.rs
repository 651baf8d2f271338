//! The same client and server as those of ddbx-bench, without ddbx and under something else:
//! tracing with OpenTelemetry, or tokio-console.

use std::io;
use std::process::ExitCode;

use clap::Parser;

// There is more in these than is needed here.
#[allow(dead_code, unused_imports)]
#[path = "../../src/peers.rs"]
mod peers;
mod subscriber;
#[allow(dead_code)]
#[path = "../../src/usage.rs"]
mod usage;

use peers::Flavor;
use peers::args::{ClientArgs, ServerArgs};
use peers::client::Lanes;
use peers::runtimes::Runtimes;
use peers::server::{serve_bare, stay};

/// Calls under OpenTelemetry or tokio-console; ddbx-bench starts it.
#[derive(Parser)]
#[command(name = "ddbx-bench-others", version)]
enum Cli {
    /// Who calls
    Client(ClientArgs),
    /// Who is called
    Server(ServerArgs),
}

fn main() -> ExitCode {
    let ended = match Cli::parse() {
        Cli::Client(args) => client(&args),
        Cli::Server(args) => server(&args),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ddbx-bench-others: {error}");
            ExitCode::FAILURE
        }
    }
}

fn server(args: &ServerArgs) -> io::Result<()> {
    peers::pin::to_one_core()?;
    subscriber::install("server")?;
    let runtimes = Runtimes::start()?;
    let mut doors = Vec::new();
    for flavor in Flavor::ALL {
        doors.extend(runtimes.of(flavor).block_on(serve_bare(flavor, &args.directory))?);
    }
    stay(&runtimes, &doors)
}

fn client(args: &ClientArgs) -> io::Result<()> {
    peers::pin::to_one_core()?;
    subscriber::install("client")?;
    let runtimes = Runtimes::start()?;
    let (doors, mut lanes) = (args.doors()?, Lanes::default());
    for flavor in Flavor::ALL {
        runtimes.of(flavor).block_on(lanes.connect_bare(flavor, &doors))?;
    }
    lanes.obey(&runtimes, &args.cpu_of)
}
