//! Words about breakpoints.

use std::time::Duration;

use clap::{Args, ValueEnum};
use ddbx_protocol::control::{Request, Wanted};
use ddbx_protocol::{BreakpointId, Condition, Scope, Spec};

/// Stop controls at an RPC or at a point in the code
///
/// Whoever comes there stands still until told to go on. Others go on until going on
/// could change the order of events; no deadline notices. The breakpoint is in force
/// when the command returns, also in replicas and processes that start later.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
SPEC:
  process:Service.method@event    event is call, arrive, return or resume:
                                  call    before the request leaves the caller
                                  arrive  before the handler starts
                                  return  before the response leaves
                                  resume  before the caller goes on
  process:point(label)            a ddbx::point!(\"label\") in the code
  * stands for anything in each part; inventory means all its replicas,
  inventory#1 the first.

Condition:
  CEL over args (an object of the arguments, or of the values of the point), result
  (at return and resume), watch (watched values), process and control. One that cannot
  be evaluated does not stop anybody; `ddbx breaks` counts and shows that.

Examples:
  ddbx break inventory:Inventory.reserve@arrive
  ddbx break '*:Payments.*@return' --scope call --if 'has(result.Err)'
  ddbx break 'inventory:point(reserve)' --if 'args.item == \"Apples\"' --once
  ddbx break orders:Orders.place@arrive --ignore 10 --for 3s")]
pub struct Break {
    /// Where: process:Service.method@event or process:point(label)
    pub spec: String,

    /// Whom it stops: everybody in the process, or only the call that comes there
    #[arg(long, value_enum, default_value_t = ScopeArg::Process)]
    pub scope: ScopeArg,

    /// Stop only if this holds, such as 'args.item == "Apples"'
    #[arg(long = "if", value_name = "EXPR")]
    pub condition: Option<String>,

    /// Stop only the first that comes there
    #[arg(long)]
    pub once: bool,

    /// Let so many pass first, in each process
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub ignore: u32,

    /// Let go by itself after this time
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    pub hold_for: Option<Duration>,
}

/// Whom it stops.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ScopeArg {
    /// Everybody in the process
    Process,
    /// Only the call
    Call,
}

impl Break {
    /// What is asked; or what is wrong with it, with a mark under the place.
    pub fn request(&self) -> Result<Request, String> {
        // Refused here already, so that a wrong one needs no session.
        self.spec.parse::<Spec>().map_err(|error| error.to_string())?;
        if let Some(condition) = &self.condition {
            Condition::check(condition).map_err(|error| error.to_string())?;
        }
        Ok(Request::Break(Wanted {
            spec: self.spec.clone(),
            scope: match self.scope {
                ScopeArg::Process => Scope::Process,
                ScopeArg::Call => Scope::Call,
            },
            ignore: self.ignore,
            once: self.once,
            condition: self.condition.clone(),
            hold_for: self.hold_for,
        }))
    }
}

/// List breakpoints: where they are, how often they were hit
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Columns:
  hits   how often it has stopped somebody
  met    how often it was met, those included that it ignored
  in     the processes where it is set now
  then   its condition and limits; spent if it has stopped its one control; disabled

Examples:
  ddbx breaks            a table; also which conditions could not be evaluated, and why
  ddbx breaks --json     the same for programs")]
pub struct Breaks {}

/// Let a breakpoint stop nobody for now
///
/// It keeps its number and its hits; `ddbx enable` brings it back. Whoever stands at it
/// stays there: `ddbx continue` lets them go on.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Examples:
  ddbx disable 1         breakpoint 1 is planted nowhere
  ddbx breaks            shows which are disabled
  ddbx enable 1          it stops whoever comes there again")]
pub struct Disable {
    /// Which, as `ddbx breaks` shows it
    pub id: u32,
}

impl Disable {
    /// What is asked.
    pub fn request(&self) -> Request {
        Request::Enable { breakpoint: BreakpointId(self.id), enabled: false }
    }
}

/// Let a breakpoint that was disabled stop again
///
/// It is in force when the command returns. What it ignores is counted anew.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Examples:
  ddbx enable 1          breakpoint 1 stops whoever comes there
  ddbx disable 1         and nobody any more")]
pub struct Enable {
    /// Which, as `ddbx breaks` shows it
    pub id: u32,
}

impl Enable {
    /// What is asked.
    pub fn request(&self) -> Request {
        Request::Enable { breakpoint: BreakpointId(self.id), enabled: true }
    }
}

/// Remove a breakpoint, or all
///
/// Whoever stands at it stays there: `ddbx continue` lets them go on.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Examples:
  ddbx delete 1          breakpoint 1
  ddbx delete --all      all of them")]
pub struct Delete {
    /// Which, as `ddbx breaks` shows it
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub id: Option<u32>,

    /// All of them
    #[arg(long)]
    pub all: bool,
}

impl Delete {
    /// Which; none for all.
    pub fn breakpoint(&self) -> Option<BreakpointId> {
        self.id.map(BreakpointId)
    }

    /// What is asked.
    pub fn request(&self) -> Request {
        Request::Delete(self.breakpoint())
    }
}
