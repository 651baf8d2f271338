//! What the environment says: one binary runs with and without a debugger.

use std::env;
use std::path::Path;

use ddbx_protocol::link::{Address, Secret};
use ddbx_satellite::link::Target;

use crate::process::Process;

/// This process, as the environment says: in the session of `DDBX_SESSION` (a name,
/// `unix:PATH` or `tcp:ADDR`), or without one. `DDBX_PROCESS` overrides the name;
/// `DDBX_SECRET_FILE` has the secret of a session over TCP; `DDBX_REDACT` lists
/// fields whose values nobody shall see, with commas between them.
///
/// It never fails: what is wrong is said on standard error, and the program goes on
/// without a debugger.
///
/// ```
/// let ddbx = ddbx::init("inventory");
/// # assert_eq!(ddbx.name(), "inventory");
/// ```
pub fn init(name: &str) -> Process {
    let name = set("DDBX_PROCESS").unwrap_or_else(|| name.to_owned());
    let Some(session) = set("DDBX_SESSION") else { return Process::without_session(&name) };
    let process = match target(&session).and_then(|target| attached(&name, target)) {
        Ok(process) => process,
        Err(error) => {
            eprintln!("ddbx: {name}: {error}; going on without a debugger");
            return Process::without_session(&name);
        }
    };
    let redacted = set("DDBX_REDACT").unwrap_or_default();
    process.redact(&redacted.split(',').map(str::trim).collect::<Vec<_>>())
}

fn target(session: &str) -> Result<Target, String> {
    let address = Address::parse(session).map_err(|error| format!("DDBX_SESSION: {error}"))?;
    // Only sessions over TCP have one.
    let file = set("DDBX_SECRET_FILE").filter(|_| matches!(address, Address::Tcp(_)));
    let secret = file.map(|file| Secret::read(Path::new(&file))).transpose();
    let secret = secret.map_err(|error| format!("DDBX_SECRET_FILE: {error}"))?;
    Ok(Target { address, secret })
}

fn attached(name: &str, target: Target) -> Result<Process, String> {
    let (process, alone) = Process::linked(name, target)
        .map_err(|error| format!("the satellite cannot start: {error}"))?;
    if let Some(error) = alone {
        eprintln!("ddbx: {name}: {error}; going on alone, and trying again");
    }
    Ok(process)
}

fn set(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|value| !value.is_empty())
}
