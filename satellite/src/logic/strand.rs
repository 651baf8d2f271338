//! What carries a delay.

use ddbx_protocol::{BreakpointId, Delay, Stack};

/// A strand's number in the process where it is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Whether the user has let it go on anyway: the rule does not concern it any
    /// more, breakpoints do.
    pub is_free: bool,
    /// The breakpoints with a condition that holds for its next event.
    pub met: Vec<BreakpointId>,
}

impl Strand {
    /// A strand that is not a branch, without anything special.
    pub fn new(id: StrandId, stack: Stack, delay: Delay) -> Self {
        Self { id, stack, delay, is_branch: false, is_free: false, met: Vec::new() }
    }
}
