//! What carries a delay, and the events at which it is gated.

use ddbx_protocol::{Delay, MethodName, PointLabel, RpcEvent, Stack};

/// A strand's number in the process where it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StrandId(pub u64);

/// What carries a delay: a call in flight with its handler, a timer, a
/// cancellation; seen at one moment in one process.
#[derive(Clone, Debug)]
pub struct Strand {
    /// Which.
    pub id: StrandId,
    /// Where it may still have an effect.
    pub stack: Stack,
    /// For how long it has been held so far.
    pub delay: Delay,
    /// Whether other strands of the same control are about.
    pub is_branch: bool,
}

/// A gated event: it happens only when the rule allows.
#[derive(Clone, Debug, PartialEq, Eq)]
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
