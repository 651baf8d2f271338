//! How many instructions a call takes, as callgrind counts them: the same on every machine,
//! however busy. This program runs under it twice, with few calls and with many, and what
//! lies between is calls alone.

use std::io::{self, ErrorKind};
use std::process::{Command, Stdio};
use std::{env, fs};

use clap::{Args, ValueEnum as _};

use super::{BY_CONTROL, Clients, Variant, one_thread};
use crate::verdict::{at_most, known, report, skipped};

const FEW: u32 = 2_000;
const MANY: u32 = 7_000;
const ADDED_MAX: f64 = 3_000.0;

/// Calls, and nothing else.
#[derive(Args)]
pub struct CountArgs {
    variant: Variant,
    calls: u32,
}

/// Makes the calls.
pub fn count(args: &CountArgs) -> io::Result<()> {
    one_thread().block_on(async {
        Clients::connected().await.call(args.variant, args.calls).await;
    });
    Ok(())
}

/// Prints the instructions that are added to a call; true if the goal is met.
pub(super) fn run(json: bool) -> bool {
    let counted = match counted() {
        Ok(counted) => counted,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skipped("instructions per call", "valgrind is not installed", json);
            return true;
        }
        Err(error) => {
            eprintln!("instructions per call: {error}");
            return false;
        }
    };
    let of = |variant: Variant| counted[variant as usize];
    let added = |variant: Variant| of(variant) - of(variant.base());
    let verdicts = [
        known("bare tarpc, instructions per call", of(Variant::Bare)),
        known("bare tarpc in a task, instructions per call", of(Variant::BareInTask)),
        known("bare tarpc again, instructions added (null)", added(Variant::Again)),
        known("without a session, instructions added", added(Variant::Alone)),
        at_most("attached and idle, instructions added", added(Variant::Attached), ADDED_MAX),
        at_most(format!("{BY_CONTROL}, instructions added"), added(Variant::ByControl), ADDED_MAX),
        known("bare tarpc as bytes, instructions per call", of(Variant::BareAsBytes)),
        known("without a session, as bytes, instructions added", added(Variant::AloneAsBytes)),
        known("attached and idle, as bytes, instructions added", added(Variant::AttachedAsBytes)),
        // Whoever writes its four events down included.
        known(
            "recording over idle, instructions added",
            of(Variant::Recorded) - of(Variant::Attached),
        ),
    ];
    report(&verdicts, json)
}

/// Instructions per call, of all variants in their order.
fn counted() -> io::Result<Vec<f64>> {
    let per_call = |variant: &Variant| {
        let between = instructions(*variant, MANY)? - instructions(*variant, FEW)?;
        Ok(between as f64 / f64::from(MANY - FEW))
    };
    Variant::value_variants().iter().map(per_call).collect()
}

fn instructions(variant: Variant, calls: u32) -> io::Result<i64> {
    let name = variant.to_possible_value().expect("no variant is hidden");
    let dir = tempfile::tempdir()?;
    let out = dir.path().join("callgrind.out");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(env::current_exe()?)
        .args(["count", name.get_name(), &calls.to_string()])
        .envs((variant == Variant::Recorded).then(|| ("DDBX_RECORD", dir.path().join("recording"))))
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("valgrind: {}: {why}", output.status)));
    }
    let profile = fs::read_to_string(&out)?;
    let total = profile.lines().find_map(|line| line.strip_prefix("summary:")?.trim().parse().ok());
    total.ok_or_else(|| io::Error::other("callgrind has written no summary"))
}
