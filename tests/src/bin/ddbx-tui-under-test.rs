//! The `ddbx-tui` command again: tests find only the programs of their own package. With
//! `PANICS` set to a session it panics after a second, which the real one never does when asked.

use std::process::ExitCode;
use std::time::Duration;

use ddbx_protocol::link::{Address, Keys};
use ddbx_tui::Options;

fn main() -> ExitCode {
    match std::env::var("PANICS") {
        Ok(session) => panics(&session),
        Err(_) => ddbx_tui::main(),
    }
}

/// Shows the session, and panics in its midst.
fn panics(session: &str) -> ExitCode {
    let address = Address::parse(session).expect("a session");
    let options = Options { address, keys: Keys::default(), watch_only: true, printed: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        tokio::select! {
            _ = ddbx_tui::run(options) => {}
            () = tokio::time::sleep(Duration::from_secs(1)) => panic!("on purpose"),
        }
    });
    ExitCode::SUCCESS
}
