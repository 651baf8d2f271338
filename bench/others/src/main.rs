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

use peers::args::{ClientArgs, ServerArgs};
use peers::client::Lanes;
use peers::server::{runtime, serve_bare, stay};

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
    let runtime = runtime()?;
    let doors = runtime.block_on(serve_bare(&args.directory))?;
    stay(&runtime, &doors)
}

fn client(args: &ClientArgs) -> io::Result<()> {
    peers::pin::to_one_core()?;
    subscriber::install("client")?;
    let runtime = runtime()?;
    let mut lanes = Lanes::default();
    runtime.block_on(lanes.connect_bare(&args.doors()?))?;
    lanes.obey(&runtime, &args.cpu_of)
}
