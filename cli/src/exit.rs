//! Exit codes: what each means, and the one line that goes with it.

use std::io;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use thiserror::Error;

use crate::text;

/// Why a command did not do what it was asked.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The input or the command line is wrong: exit code 2.
    #[error("{0}")]
    BadInput(String),
    /// What was asked for went wrong: exit code 1.
    #[error("{0}")]
    Failed(String),
    /// An algorithm does not terminate, or a replay diverges: exit code 3. What
    /// there is to say has been said on standard output already if `reported`.
    #[error("{message}")]
    NoResult {
        /// For people.
        message: String,
        /// Whether standard output has it.
        reported: bool,
    },
    /// Standard output cannot be written: exit code 1.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// The exit code of an outcome; failures are printed in one line.
pub(crate) fn code(outcome: Result<(), Failure>) -> ExitCode {
    let Err(failure) = outcome else {
        return ExitCode::SUCCESS;
    };
    let (code, quiet) = match &failure {
        Failure::BadInput(_) => (2, false),
        Failure::Failed(_) => (1, false),
        Failure::NoResult { reported, .. } => (3, *reported),
        // Whoever reads has seen enough, as with `| head`.
        Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => (0, true),
        Failure::Output(_) => (1, false),
    };
    if !quiet {
        let style = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        anstream::eprintln!("{style}error:{style:#} {}", text::one_line(&failure.to_string()));
    }
    ExitCode::from(code)
}
