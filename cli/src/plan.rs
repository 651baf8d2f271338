//! `ddbx plan`: Algorithm D on an execution that is given as a file.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ddbx_central::logic::algorithm_d::{self, PlanError};

use crate::exit::Failure;

pub mod format;
mod picture;
mod report;

/// An input may be this large; beyond it something else was meant.
const INPUT_BYTES_MAX: u64 = 1 << 30;

/// Compute which delays keep the order of events when executions are suspended
///
/// Reads executions (chains of fragments, each in one process) and breakpoints,
/// and prints the delayed execution that Algorithm D computes: who waits, where,
/// for how long, and because of whom.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct PlanArgs {
    /// The input as JSON; `-` reads standard input
    #[arg(value_name = "FILE|-")]
    input: PathBuf,

    /// Which algorithm
    #[arg(long, value_enum, default_value_t = Mode::Virtual)]
    mode: Mode,

    /// Print JSON instead of a table and a picture
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = r#"Input:
  {"executions":  [{"name": "E1", "fragments": [{"pid": "A", "time": 6}, {"pid": "S", "time": 5}]},
                   {"name": "E2", "fragments": [{"pid": "B", "time": 7}, {"pid": "S", "time": 1}]}],
   "breakpoints": [{"execution": "E1", "fragment": 1, "suspend": 4}]}

  An execution is one thread of control; a fragment is what it does in one
  process (pid). Fragments count from 1 and are written #1, #2. A breakpoint
  suspends its execution at the end of a fragment; breakpoints may be left out.
  Names are unique. Times are whole numbers up to 2^63-1 in a unit of your choice;
  mode virtual needs them greater than 0.

Output with --json, for each fragment:
  start       when it starts, delays included
  breakpoint  how long the breakpoint suspends it, at its end
  propagated  how long it waits after that, so that the order is kept
  delay       both together
  cause       whom it waits for: an execution that is as far behind after that
              fragment, and the process that both use

Examples:
  ddbx plan run.json                    a table and a space-time picture
  ddbx plan run.json --json             for programs
  ddbx plan run.json --mode literal     the algorithm as the paper prints it
  generate | ddbx plan -                from another program

Exit codes:
  0 planned   1 cannot write   2 bad input   3 the literal algorithm does not end"#;

/// The algorithms by the names of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Corrected: compares undelayed times and keeps ties
    Virtual,
    /// Corrected, but events at equal times may change places; accepts times of 0
    VirtualStrict,
    /// As printed in the paper: may reverse clients, may not terminate
    Literal,
}

impl From<Mode> for algorithm_d::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Virtual => Self::Virtual,
            Mode::VirtualStrict => Self::VirtualStrict,
            Mode::Literal => Self::Literal,
        }
    }
}

pub(crate) fn run(args: &PlanArgs) -> Result<(), Failure> {
    let place = args.input.display();
    let bad_input = |why: String| Failure::BadInput(format!("{place}: {why}"));
    let bytes = read(args).map_err(|error| bad_input(format!("cannot read it: {error}")))?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(bad_input("is over 1 GiB, which no plan needs".to_owned()));
    }
    let program = format::parse(&bytes).map_err(|error| bad_input(error.to_string()))?;
    drop(bytes);

    match algorithm_d::plan(&program, args.mode.into()) {
        Ok(plan) if args.json => {
            let mut out = BufWriter::new(io::stdout().lock());
            format::write(&mut out, &program, &plan)?;
            out.flush()?;
        }
        Ok(plan) => {
            let mut out = BufWriter::new(anstream::stdout().lock());
            report::write(&mut out, &program, &plan, args.mode.into())?;
            out.flush()?;
        }
        Err(PlanError::Nontermination { steps }) => {
            if args.json {
                let answer = serde_json::json!({"error": "nontermination", "steps": steps});
                writeln!(io::stdout().lock(), "{answer}")?;
            }
            return Err(Failure::NoResult {
                message: format!(
                    "{place}: {}; --mode virtual always terminates",
                    PlanError::Nontermination { steps }
                ),
                reported: args.json,
            });
        }
        Err(error @ (PlanError::ZeroTime { .. } | PlanError::Overflow { .. })) => {
            return Err(bad_input(error.to_string()));
        }
    }
    Ok(())
}

fn read(args: &PlanArgs) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte over the limit is enough to know that it is over.
    let limit = INPUT_BYTES_MAX + 1;
    if args.input.as_os_str() == "-" {
        let stdin = io::stdin().lock();
        if stdin.is_terminal() {
            anstream::eprintln!("reading the input from the terminal; Ctrl-D ends it");
        }
        stdin.take(limit).read_to_end(&mut bytes)?;
    } else {
        File::open(&args.input)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
