//! How many instructions a call takes, as callgrind counts them: the same on every machine,
//! however busy. This program runs under it twice, with few calls and with many, and what
//! lies between is calls alone.
//!
//! What the allocator does is left out. Nothing is allocated that bare calls do not allocate,
//! which has a goal of its own, and how much work an allocation is depends on what happens to
//! lie beside it: the same calls differ by hundreds of instructions between two programs.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::process::{Command, Stdio};
use std::{env, fs, mem};

use clap::{Args, ValueEnum as _};

use super::{BY_CONTROL, Clients, NESTED, Variant, one_thread};
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
        known(format!("{NESTED}, instructions added to both"), added(Variant::AttachedNested)),
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
    match without_the_allocator(&fs::read_to_string(&out)?) {
        0 => Err(io::Error::other("callgrind has counted nothing")),
        counted => Ok(counted),
    }
}

/// The instructions of all functions but those of the allocator.
///
/// A profile names a function (`fn=(7) name`, later `fn=(7)`) and then has a line for each of
/// its lines with what that cost. A line after `calls=` has what a called function cost, which
/// is counted there.
fn without_the_allocator(profile: &str) -> i64 {
    let (mut allocates, mut total) = (HashMap::new(), 0);
    let (mut is_counted, mut is_callee) = (true, false);
    for line in profile.lines() {
        if let Some((of, function)) = line.split_once("fn=") {
            let (number, name) = function.split_once(' ').unwrap_or((function, ""));
            if !name.is_empty() {
                allocates.insert(number, is_of_the_allocator(name));
            }
            if of.is_empty() {
                is_counted = allocates.get(number) != Some(&true);
            }
        } else if line.starts_with("calls=") {
            is_callee = true;
        } else if line.starts_with(|first: char| "+-*".contains(first) || first.is_ascii_digit()) {
            let cost = line.split_once(' ').and_then(|(_, cost)| cost.parse::<i64>().ok());
            if is_counted && !mem::take(&mut is_callee) {
                total += cost.unwrap_or(0);
            }
            is_callee = false;
        }
    }
    total
}

/// As glibc calls them.
fn is_of_the_allocator(function: &str) -> bool {
    let known = ["malloc", "calloc", "realloc", "free", "memalign", "posix_memalign"];
    let inner = ["_int_", "_mid_", "malloc_", "unlink_chunk", "sysmalloc", "systrim", "tcache_"];
    known.contains(&function) || inner.iter().any(|inner| function.starts_with(inner))
}

#[cfg(test)]
mod tests {
    use super::without_the_allocator;

    #[test]
    fn what_the_allocator_costs_is_left_out() {
        let profile = "events: Ir\n\
                       fn=(1) main\n\
                       1 10\n\
                       +2 5\n\
                       cfn=(2) malloc\n\
                       calls=3 20\n\
                       * 700\n\
                       * 1\n\
                       \n\
                       fn=(2)\n\
                       20 400\n\
                       cfn=(3) _int_malloc\n\
                       calls=3 30\n\
                       +1 300\n\
                       \n\
                       fn=(3)\n\
                       30 300\n\
                       fn=(1)\n\
                       -4 2\n\
                       totals: 718\n";
        assert_eq!(without_the_allocator(profile), 10 + 5 + 1 + 2);
    }
}
