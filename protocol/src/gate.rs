//! The events at which a strand may have to wait.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::breakpoint::RpcEvent;
use crate::ids::{MethodName, PointLabel};

/// A gated event: it happens only when the rule allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gate {
    /// One of the four events of an RPC.
    Rpc(RpcEvent, MethodName),
    /// A labelled place in user code.
    Point(PointLabel),
    /// A cancellation reaches the callee.
    Cancel,
    /// A deadline or a lease runs out: something else is given up.
    Deadline,
    /// A sleep is over: its own control goes on.
    Sleep,
    /// A control starts another one.
    Spawn,
    /// An operation on a shared object: lock, unlock, arm or renew a lease.
    Sync,
}

impl Gate {
    /// Whether it sends something away from the process, or starts something.
    pub fn is_departure(&self) -> bool {
        matches!(self, Self::Rpc(RpcEvent::Call | RpcEvent::Return, _) | Self::Spawn)
    }

    /// Whether a timer makes it happen.
    pub fn is_timer(&self) -> bool {
        matches!(self, Self::Deadline | Self::Sleep)
    }

    /// Whether it comes in from another process.
    pub fn is_arrival(&self) -> bool {
        matches!(self, Self::Rpc(RpcEvent::Arrive | RpcEvent::Resume, _) | Self::Cancel)
    }
}

/// As in a breakpoint, where it can be one: `Inventory.reserve@arrive`.
impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc(event, method) => write!(f, "{method}@{event}"),
            Self::Point(label) => write!(f, "point({label})"),
            Self::Cancel => f.write_str("cancellation"),
            Self::Deadline => f.write_str("deadline"),
            Self::Sleep => f.write_str("sleep"),
            Self::Spawn => f.write_str("spawn"),
            Self::Sync => f.write_str("sync"),
        }
    }
}
