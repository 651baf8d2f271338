//! Mistakes that would open a session to others: the command refuses to make them.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Instant;

use super::kinds::{Door, Kind};
use super::raw::Outcome;
use super::target::Targets;

pub(super) async fn make(
    targets: &Targets,
    kind: Kind,
    mut random: fastrand::Rng,
) -> io::Result<Outcome> {
    let since = Instant::now();
    let nonce = random.u64(..);
    let dir = targets.place.dir();
    let tcp = targets.at(Door::Tcp).address.to_string();
    let (words, says) = match kind {
        Kind::ListenWithoutTls => {
            let everywhere = ["tcp:0.0.0.0:0", "tcp:[::]:0", "tcp:192.0.2.1:4000"];
            let at = everywhere[random.usize(..everywhere.len())];
            (vec!["central", "--session", at, "--secret-file", "secret"], "ddbx certs DIR")
        }
        Kind::SymlinkedDirectory => {
            let link = dir.join(format!("link-{nonce}"));
            symlink(dir.join("run"), &link)?;
            let socket = format!("unix:{}/s.sock", link.display());
            let word = if random.bool() { "ps" } else { "central" };
            return run(targets, &[word, "--session", &socket], "is a symbolic link", since).await;
        }
        Kind::OpenSecret => {
            let file = dir.join(format!("open-{nonce}"));
            fs::copy(dir.join("secret"), &file)?;
            let mode = [0o644, 0o640, 0o604, 0o660][random.usize(..4)];
            fs::set_permissions(&file, Permissions::from_mode(mode))?;
            let file = file.display().to_string();
            let words = ["ps", "--session", &tcp, "--secret-file", &file];
            return run(targets, &words, "is open to other users", since).await;
        }
        _ => {
            let secret = fs::read_to_string(dir.join("secret"))?.trim_end().to_owned();
            let option = ["--secret-file", "--secret"][random.usize(..2)];
            let says = if option == "--secret" { "unexpected argument" } else { "command line" };
            let words = ["ps", "--session", &tcp, option, &secret];
            return run(targets, &words, says, since).await;
        }
    };
    run(targets, &words, says, since).await
}

/// Runs the command: it must end by itself, with an error that says this.
async fn run(targets: &Targets, words: &[&str], says: &str, since: Instant) -> io::Result<Outcome> {
    let mut command = tokio::process::Command::from(targets.place.command(&targets.program));
    command.args(words).kill_on_drop(true);
    let output = tokio::time::timeout(crate::waiting::LIMIT, command.output()).await??;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let refused = output.status.code() != Some(0) && output.stdout.is_empty();
    Ok(Outcome::refused_if(refused && said.contains(says), said, since))
}
