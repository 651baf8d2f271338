//! Words about what happens.

use clap::Args;

/// Show what has happened in the session
///
/// Who joined and left, who stood still and went on, what was done to breakpoints and
/// processes; and while somebody follows, the events of the program itself: calls, returns,
/// deadlines, points.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Events of the program are collected only while somebody follows: otherwise a call costs
the debugger nothing.

Examples:
  ddbx events                 the last of what has happened
  ddbx events --follow        that, and what happens from now on, until Ctrl-C
  ddbx events -f --only inventory
                              what mentions inventory
  ddbx events -f --json       the same, one JSON object on each line

customer-4!3 is the third call that the control customer-4 makes.")]
pub struct Events {
    /// Go on with what happens from now on
    #[arg(long, short)]
    pub follow: bool,

    /// Only what mentions this: a process, a control, a method
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
}
