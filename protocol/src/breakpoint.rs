//! Breakpoints as they are planted in a process.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::ids::BreakpointId;
use crate::spec::Pattern;

/// A breakpoint in one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breakpoint {
    /// Which.
    pub id: BreakpointId,
    /// Where.
    pub place: Place,
    /// Whom it stops.
    pub scope: Scope,
    /// How many times it is passed before it stops anybody.
    pub ignore: u32,
    /// Whether it stops only once.
    pub once: bool,
    /// It stops only whom this holds for.
    pub condition: Option<Condition>,
}

/// What a breakpoint waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// An event of an RPC.
    Rpc {
        /// Which event; none for all.
        event: Option<RpcEvent>,
        /// Which methods.
        method: Pattern,
    },
    /// A point in user code.
    Point {
        /// Which labels.
        label: Pattern,
    },
}

/// The four events of an RPC at which a control can be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RpcEvent {
    /// Before the request leaves the caller.
    Call,
    /// Before the handler starts.
    Arrive,
    /// Before the response leaves.
    Return,
    /// Before the caller goes on.
    Resume,
}

impl fmt::Display for RpcEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Call => "call",
            Self::Arrive => "arrive",
            Self::Return => "return",
            Self::Resume => "resume",
        })
    }
}

/// Whom a breakpoint stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Everybody: nobody enters the process, and whoever is inside stops at its
    /// next gated event.
    #[default]
    Process,
    /// Only the strand that hit it.
    Call,
}
