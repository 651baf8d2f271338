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
    /// The same, with a mark under the place on a line of its own: exit code 2.
    #[error("{0}")]
    Marked(String),
    /// There is no session to talk to: exit code 4.
    #[error("{0}")]
    NoSession(String),
    /// What was waited for did not come: exit code 5.
    #[error("{0}")]
    TimedOut(String),
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
        Failure::BadInput(_) | Failure::Marked(_) => (2, false),
        Failure::NoSession(_) => (4, false),
        Failure::TimedOut(_) => (5, false),
        Failure::Failed(_) => (1, false),
        Failure::NoResult { reported, .. } => (3, *reported),
        // Whoever reads has seen enough, as with `| head`.
        Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => (0, true),
        Failure::Output(_) => (1, false),
    };
    if !quiet {
        let style = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        let message = failure.to_string();
        let message = match failure {
            Failure::Marked(_) => {
                message.lines().map(text::one_line).collect::<Vec<_>>().join("\n")
            }
            _ => text::one_line(&message),
        };
        anstream::eprintln!("{style}error:{style:#} {message}");
    }
    ExitCode::from(code)
}
