//! Algorithm D offline: which delays keep the order of events when some
//! executions are suspended at breakpoints.
//!
//! # The problem
//!
//! A distributed program is a set of sequential executions. Each is a chain of
//! fragments; a fragment runs in one process, and where two neighbouring
//! fragments are in different processes an RPC call or return lies between
//! them. A breakpoint suspends an execution at the end of a fragment. If the
//! others simply ran on, they would reach shared processes earlier than the
//! suspended one and the program would behave differently *because somebody
//! looked*. Freezing everybody needs a broadcast. Section 3 of the Paradise
//! paper instead delays each execution just before the RPC with which it could
//! overtake a suspended one.
//!
//! # The paper's algorithm and ours
//!
//! [`Mode::Literal`] is the algorithm as printed, misprints resolved. It
//! compares *delayed* times, and that is wrong: it can reverse two clients of
//! one server, it may never end, and on ties it lets two executions into a
//! server that took one at a time.
//!
//! [`Mode::Virtual`] compares *undelayed* times and counts ties. It computes
//! the least delays, placed only before RPC entries, such that
//!
//! > if a fragment of `i` ends no later than `k` enters process `p` by RPC (both
//! > in undelayed time) and `p` is one of `i`'s processes, then at that entry
//! > `k` carries at least the delay that `i` carries at that end.
//!
//! From it follows what users care about: executions enter every process in
//! the order of the run without breakpoints, ties stay ties, and mutual
//! exclusion is kept. With fragments that take no time that system can be
//! unsatisfiable, so `Virtual` refuses them; [`Mode::VirtualStrict`] counts no
//! ties and accepts them.
//!
//! # Two forms
//!
//! [`reference()`] steps through the paper's loop, for all three modes; it is the
//! specification. [`plan`] uses it for `Literal` and a single sweep over
//! the fragment ends for the other two: O(N log N) for server sets of bounded
//! size. Property tests hold the two forms equal.

mod outcome;
mod program;
mod reference;
mod sweep;

pub use outcome::{Cause, Plan, PlanError, PlannedFragment};
pub use program::{
    Execution, ExecutionIndex, Fragment, FragmentIndex, ProcessIndex, Program, ProgramBuilder,
    ProgramError, TICKS_MAX, Ticks,
};
pub use reference::reference;

/// Which of the three algorithms to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As printed in the paper; may reverse clients and may not terminate.
    Literal,
    /// The correction: undelayed times, ties counted.
    Virtual,
    /// The correction without ties; accepts fragments that take no time.
    VirtualStrict,
}

/// Computes the delayed execution of `program`.
pub fn plan(program: &Program, mode: Mode) -> Result<Plan, PlanError> {
    match mode {
        Mode::Literal => reference(program, mode),
        Mode::Virtual => sweep::virtual_ties(program),
        Mode::VirtualStrict => sweep::virtual_strict(program),
    }
}
