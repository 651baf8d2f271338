//! The recording of a run: made before its processes start, finished after their end.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::SystemTime;

use ddbx_protocol::{ProcessName, SessionName};
use ddbx_recording::{JoinError, Keep, Program, SessionManifest, seal};
use humantime::format_rfc3339_seconds;

use super::supervisor::Exit;
use crate::exit::Failure;

/// Makes the recording; gives what the processes need in their environment.
pub(super) fn create_recording(
    directory: &Path,
    session: SessionName,
    keep: Keep,
    program: Program,
) -> Result<Vec<(String, String)>, Failure> {
    // Processes run elsewhere.
    let absolute = std::path::absolute(directory)?;
    let Some(path) = absolute.to_str() else {
        let why = "its path is not UTF-8, as that of a recording must be";
        return Err(Failure::BadInput(format!("{}: {why}", directory.display())));
    };
    let mut environment = vec![("DDBX_RECORD".to_owned(), path.to_owned())];
    match keep {
        // What can be replayed is recorded so that a replay is exact.
        Keep::All => environment.push(("DDBX_EXACT".to_owned(), "1".to_owned())),
        Keep::LastMib(mib) => environment.push(("DDBX_KEEP".to_owned(), mib.to_string())),
    }
    let created = format_rfc3339_seconds(SystemTime::now()).to_string();
    let mut manifest = SessionManifest::new(session, created, keep);
    manifest.program = Some(program);
    ddbx_recording::create(&absolute, &manifest).map_err(|error| match error {
        JoinError::Io { .. } => Failure::Failed(error.to_string()),
        _ => Failure::BadInput(error.to_string()),
    })?;
    Ok(environment)
}

/// Called when all processes are gone; `exits` are those who went by themselves.
pub(super) fn finish_recording(
    directory: &Path,
    exits: &[(ProcessName, Exit)],
) -> Result<(), Failure> {
    let codes = exits.iter().map(|(process, exit)| (process.clone(), exit.code)).collect();
    seal(directory, codes).map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(())
}

/// How much to keep, from a text such as 64MiB or 1GiB.
pub(super) fn parse_keep(text: &str) -> Result<NonZeroU32, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let mib_per_unit = match unit {
        "MiB" => 1,
        "GiB" => 1024,
        "" if !number.is_empty() => return Err(format!("say the unit too, as in {text}MiB")),
        _ => return Err("a whole number of MiB or GiB, as in 64MiB".to_owned()),
    };
    let mib = number.parse::<u32>().ok().and_then(|number| number.checked_mul(mib_per_unit));
    mib.and_then(NonZeroU32::new).ok_or_else(|| format!("at least 1MiB, at most {}MiB", u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit() {
        let mib = |text: &str| parse_keep(text).map(NonZeroU32::get);
        assert_eq!(mib("64MiB"), Ok(64));
        assert_eq!(mib("1GiB"), Ok(1024));
        assert_eq!(mib("64"), Err("say the unit too, as in 64MiB".to_owned()));
        for wrong in ["", "MiB", "0MiB", "1.5GiB", "64MB", "64 MiB", "-1MiB", "4194304GiB"] {
            assert!(mib(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_recording_is_made_once_and_processes_know_where() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("rec");
        let program = Program { file: "/ddbx.toml".to_owned(), text: String::new() };
        let create = |keep| {
            let session = SessionName::new("shop").unwrap();
            create_recording(&directory, session, keep, program.clone())
        };
        let environment = create(Keep::LastMib(NonZeroU32::MIN)).unwrap();
        let of = |name| environment.iter().find(|(n, _)| n == name).map(|(_, value)| value);
        assert_eq!(of("DDBX_RECORD").map(Path::new), Some(directory.as_path()));
        assert_eq!(of("DDBX_KEEP").unwrap(), "1");
        let recording = ddbx_recording::Recording::open(&directory).unwrap();
        let session = recording.session();
        assert_eq!(session.session.as_str(), "shop");
        assert!(humantime::parse_rfc3339(&session.created).is_ok(), "{}", session.created);
        assert!(matches!(create(Keep::All), Err(Failure::BadInput(why)) if why.contains("new")));
    }
}
