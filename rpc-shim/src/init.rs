//! What the environment says: one binary runs with and without a debugger.

use std::path::Path;
use std::{env, io};

use ddbx_protocol::link::{Address, KeyFiles, Keys, KeysError};
use ddbx_satellite::link::Target;

use crate::course::Wanted;
use crate::process::Process;

/// This process, as the environment says: in the session of `DDBX_SESSION` (a name,
/// `unix:PATH` or `tcp:ADDR`), or without one. `DDBX_PROCESS` overrides the name, unless a
/// process of that name takes part: then it was inherited from that one, and is not meant;
/// `DDBX_SECRET_FILE` has the secret of a session over TCP, and `DDBX_TLS` is the directory
/// with certificates (and the secret) for one on another machine; `DDBX_REDACT` lists
/// fields whose values nobody shall see, with commas between them. `DDBX_RECORD` names
/// the directory of a recording to which the process adds its log, with or without a
/// session; with `DDBX_KEEP` only the last so many MiB of it are kept.
///
/// It never fails: what is wrong is said on standard error, and the program goes on
/// without a debugger.
///
/// ```
/// let ddbx = ddbx::init("inventory");
/// # assert_eq!(ddbx.name(), "inventory");
/// ```
pub fn init(name: &str) -> Process {
    let own_name = name;
    let name = set("DDBX_PROCESS").unwrap_or_else(|| name.to_owned());
    let wanted = Wanted::from_environment();
    let process = match set("DDBX_SESSION") {
        Some(session) => {
            target(&session).and_then(|target| attached(&name, own_name, target, &wanted))
        }
        None if wanted.is_nothing() => Ok(Process::without_session(&name)),
        None => Process::alone(&name, &wanted).map_err(cannot_start),
    };
    let process = match process {
        Ok(process) => process,
        Err(error) => {
            eprintln!("ddbx: {name}: {error}; going on without a debugger");
            return Process::without_session(&name);
        }
    };
    let redacted = set("DDBX_REDACT").unwrap_or_default();
    let redacted = redacted.split(',').map(str::trim).filter(|field| !field.is_empty());
    process.redact(&redacted.collect::<Vec<_>>())
}

fn target(session: &str) -> Result<Target, String> {
    let address = Address::parse(session).map_err(|error| format!("DDBX_SESSION: {error}"))?;
    let (secret, tls) = (set("DDBX_SECRET_FILE"), set("DDBX_TLS"));
    let files =
        KeyFiles { secret: secret.as_deref().map(Path::new), tls: tls.as_deref().map(Path::new) };
    let keys = Keys::read(&address, files).map_err(|error| match error {
        KeysError::Secret(error) if secret.is_some() => format!("DDBX_SECRET_FILE: {error}"),
        error => format!("DDBX_TLS: {error}"),
    })?;
    Ok(Target { address, keys })
}

fn cannot_start(error: io::Error) -> String {
    format!("the satellite cannot start: {error}")
}

fn attached(
    name: &str,
    own_name: &str,
    target: Target,
    wanted: &Wanted,
) -> Result<Process, String> {
    let (process, alone) = Process::linked(name, own_name, target, wanted).map_err(cannot_start)?;
    if let Some(error) = alone {
        eprintln!("ddbx: {name}: {error}; going on alone, and trying again");
    }
    Ok(process)
}

pub(crate) fn set(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|value| !value.is_empty())
}
