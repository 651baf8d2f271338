//! `ddbx-tui`: the screen, in a terminal of its own.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use ddbx_protocol::link::{Address, Secret};
use ddbx_tui::Options;

/// Look at a session: who stands still and why, clocks, calls, breakpoints, what happens
#[derive(Parser)]
#[command(name = "ddbx-tui", version)]
struct Cli {
    /// Which session: its name, unix:PATH or tcp:IP:PORT; needless if only one runs
    #[arg(long, short = 'S', env = "DDBX_SESSION", hide_env_values = true)]
    session: Option<String>,

    /// The secret of a session over TCP
    #[arg(long, value_name = "FILE", env = "DDBX_SECRET_FILE", hide_env_values = true)]
    secret_file: Option<PathBuf>,

    /// Only look: nothing can be changed
    #[arg(long)]
    watch_only: bool,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let Ok(address) = Address::parse(cli.session.as_deref().unwrap_or("demo")) else {
        return ExitCode::from(2);
    };
    let secret = cli.secret_file.and_then(|file| Secret::read(&file).ok());
    let options = Options { address, secret, watch_only: cli.watch_only, printed: None };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    match runtime.block_on(ddbx_tui::run(options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
