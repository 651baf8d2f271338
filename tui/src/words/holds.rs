//! Words about who stands still.

use clap::Args;
use ddbx_protocol::HoldId;
use ddbx_protocol::control::{Request, Whom};

/// List who stands still, why, and because of whom
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Why:
  breakpoint 1     it has come to a breakpoint; only you can let it go on
  halt             its process is held, by a breakpoint of scope process or a pause
  for hold 3       going on could change the order of events: it goes on by itself
                   after hold 3 does, or comes to a breakpoint itself
  order            the same, and whom it waits for goes on already
  turn 15, at 12   in a replay: it was event 15 of its process, and 12 comes next

Examples:
  ddbx holds             who stands still now
  ddbx bt 3              how hold 3 came to where it stands, across processes
  ddbx continue 3        let it go on when its turn comes
  ddbx release 3         let it go on anyway; order is not guaranteed from then on")]
pub struct Holds {}

/// Show how a control came to where it stands, across processes
///
/// The innermost call first, down to the process where the control began.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Examples:
  ddbx bt 3              how hold 3 came to where it stands
  #0 inventory  Inventory.reserve  for 2.005 s, deadline in 0.187 s
  #1 orders  Orders.place  for 2.009 s, deadline in 0.187 s
  #2 gateway  began here

Deadlines are measured by the clock of who is held, which stands still.")]
pub struct Bt {
    /// Which hold, as `ddbx holds` shows it
    pub hold: u64,
}

impl Bt {
    /// What is asked.
    pub fn request(&self) -> Request {
        Request::Backtrace(HoldId(self.hold))
    }
}

/// Let somebody go on who is held
///
/// It goes on when its turn comes: not before others that are further behind and still
/// held. Without an argument the only one that is held is meant.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Examples:
  ddbx continue              the only one that is held
  ddbx continue 3            hold 3
  ddbx continue inventory    all that is held in inventory, and a pause of it
  ddbx continue --all        everybody; breakpoints stay")]
pub struct Continue {
    /// Which hold, as `ddbx holds` shows it; or which process
    #[arg(value_name = "HOLD|PROCESS", conflicts_with = "all")]
    pub whom: Option<String>,

    /// Everybody
    #[arg(long)]
    pub all: bool,
}

impl Continue {
    /// What is asked.
    pub fn request(&self) -> Request {
        Request::Continue(match (&self.whom, self.all) {
            (_, true) => Whom::All,
            (None, false) => Whom::TheOnly,
            (Some(text), false) => match text.parse() {
                Ok(number) => Whom::Hold(HoldId(number)),
                Err(_) => Whom::Process(text.clone()),
            },
        })
    }
}

/// Let somebody go on anyway
///
/// Now, whatever the rule says, and at all that it does from here. The order of events
/// is not guaranteed from then on, which `ddbx ps` shows.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Examples:
  ddbx release 3         let hold 3 go on, also if it waits for others")]
pub struct Release {
    /// Which hold, as `ddbx holds` shows it
    pub hold: u64,
}

impl Release {
    /// What is asked.
    pub fn request(&self) -> Request {
        Request::Release(HoldId(self.hold))
    }
}
