//! Certificates of strangers, and of those who belong to a session.

use std::fs;
use std::path::Path;

use ddbx_cli::certs::{self, Valid};
use time::{Duration, OffsetDateTime};

use super::target::failed;

/// Those of the session, those of another one, and those of another time. The session
/// knows the authority of the last too: that they are old is all that is wrong with them.
pub(super) fn make(dir: &Path) -> Result<(), String> {
    let now = OffsetDateTime::now_utc();
    let valid = Valid { from: now - Duration::days(1), until: now + Duration::days(1) };
    let over = Valid { from: now - Duration::days(9), until: now - Duration::days(8) };
    for (name, valid) in [("certs", valid), ("foreign", valid), ("expired", over)] {
        certs::make(&dir.join(name), &[], valid).map_err(|error| error.to_string())?;
    }
    let io = failed("certificates cannot be copied");
    let copy = |files: &[&str], from: &str, to: &str| {
        files.iter().try_for_each(|file| {
            fs::copy(dir.join(from).join(file), dir.join(to).join(file)).map(drop)
        })
    };
    let authority = |of: &str| fs::read_to_string(dir.join(of).join("ca.pem"));
    let both = authority("certs").and_then(|one| Ok(one + &authority("expired")?)).map_err(&io)?;
    fs::create_dir(dir.join("central")).map_err(&io)?;
    let all = ["central.pem", "central.key", "client.pem", "client.key", "secret"];
    copy(&all, "certs", "central").map_err(&io)?;
    fs::write(dir.join("central/ca.pem"), both).map_err(&io)?;
    // What they show is wrong, and not whom they trust.
    for stranger in ["foreign", "expired"] {
        copy(&["ca.pem", "secret"], "certs", stranger).map_err(&io)?;
    }
    Ok(())
}
