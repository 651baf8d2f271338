//! Words about processes, and about the session as a whole.

use clap::Args;
use ddbx_protocol::control::Request;

/// List the processes of the session: clocks, delays, calls in flight
///
/// A process's virtual clock is real time less its delay: all the time for which it
/// was held or made to wait so far. Deadlines are measured by it.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Columns:
  state       running; held by a breakpoint; paused; waiting because of a hold; gone
  clock       virtual time since the session began
  delay       for how long it was held or made to wait so far
  in flight   calls that are in the process now
  held        controls that stand at a breakpoint or are halted with their process
  waiting     controls that wait so that the order of events is kept

Examples:
  ddbx ps            a table
  ddbx ps --json     the same for programs, with whom each one calls")]
pub struct Ps {}

/// Hold a whole process, or all
///
/// Nobody enters a paused process, and whoever is inside stops at its next event.
/// Others go on until going on could change the order of events.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Examples:
  ddbx pause inventory      hold inventory and its replicas
  ddbx continue inventory   let it go on
  ddbx pause --all          hold everything; the same as ddbx panic")]
pub struct Pause {
    /// Which process; its replicas are meant too
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub process: Option<String>,

    /// All of them
    #[arg(long)]
    pub all: bool,
}

impl Pause {
    /// What is asked.
    pub fn request(&self) -> Request {
        Request::Pause(self.process.clone())
    }
}

/// Hold everything now
///
/// The same as `ddbx pause --all`; `ddbx continue --all` ends it.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Examples:
  ddbx panic             something goes wrong just now: hold all of it
  ddbx continue --all    go on")]
pub struct Panic {}

impl Panic {
    /// What is asked.
    pub fn request(&self) -> Request {
        Request::Pause(None)
    }
}

/// List watched values
///
/// A program shows values with `ddbx::watch!(name = value)`. They arrive twice in a
/// second; conditions of breakpoints see them at once, as `watch.name`.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Examples:
  ddbx watch             a table
  ddbx break 'inventory:point(reserve)' --if 'watch.stock_left < 3'
                         stop when a watched value is small")]
pub struct Watch {}

/// End the session
///
/// What `ddbx run` has started is ended too; what was started by hand goes on
/// without a debugger, and nobody stays held.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Examples:
  ddbx stop                    the session that runs
  ddbx stop --session shop     the one that is called shop")]
pub struct Stop {}
