//! The output: how long each fragment is delayed, and because of whom.

use thiserror::Error;

use super::program::{ExecutionIndex, FragmentIndex, ProcessIndex, Program, TICKS_MAX, Ticks, sum};

/// Why a propagated delay is there: the execution that waits carries at least
/// the delay that `execution` carries at the end of `fragment`, because both
/// use `process`, which the waiting one enters next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Who must not be overtaken.
    pub execution: ExecutionIndex,
    /// The fragment at whose end that delay is reached.
    pub fragment: FragmentIndex,
    /// The process that both use.
    pub process: ProcessIndex,
}

/// One fragment of the delayed execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFragment {
    /// Which one.
    pub index: FragmentIndex,
    /// Its delayed start.
    pub start: Ticks,
    /// Its delayed end: after its time, its breakpoint and its delay.
    pub end: Ticks,
    /// How long Algorithm D makes it wait at its end.
    pub propagated: Ticks,
    /// Because of whom; `None` exactly when nothing is propagated.
    pub cause: Option<Cause>,
}

/// The delayed execution: for every fragment what Algorithm D adds at its end.
/// Kept small, because programs can have millions of fragments; everything
/// else is derived by [`Plan::fragments`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    waits: Vec<Vec<Wait>>,
}

/// A propagated delay and its cause in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wait {
    amount: Ticks,
    execution: u32,
    fragment: u32,
}

impl Plan {
    pub(super) fn undelayed(program: &Program) -> Self {
        let none = Wait { amount: 0, execution: u32::MAX, fragment: u32::MAX };
        Self { waits: program.executions.iter().map(|e| vec![none; e.fragments.len()]).collect() }
    }

    /// Makes an execution wait for `amount` at the end of a fragment.
    pub(super) fn delay(
        &mut self,
        execution: usize,
        fragment: usize,
        amount: Ticks,
        (because, at): (ExecutionIndex, FragmentIndex),
    ) {
        let wait = Wait { amount, execution: because.0, fragment: at.0 };
        self.waits[execution][fragment] = wait;
    }

    /// Checks that no delayed time passes [`TICKS_MAX`].
    pub(super) fn checked(self, program: &Program) -> Result<Self, PlanError> {
        for (index, (execution, waits)) in program.executions.iter().zip(&self.waits).enumerate() {
            let mut end = 0;
            for (place, (fragment, wait)) in execution.fragments.iter().zip(waits).enumerate() {
                end = sum(end, fragment.time)
                    .and_then(|end| sum(end, fragment.breakpoint))
                    .and_then(|end| sum(end, wait.amount))
                    .ok_or_else(|| PlanError::overflow(program, index, place))?;
            }
        }
        Ok(self)
    }

    /// The delayed fragments of an execution, in order.
    pub fn fragments<'a>(
        &'a self,
        program: &'a Program,
        execution: ExecutionIndex,
    ) -> impl Iterator<Item = PlannedFragment> + 'a {
        let fragments = &program.execution(execution).fragments;
        let mut clock = 0;
        self.waits[execution.0 as usize].iter().enumerate().map(move |(place, wait)| {
            let fragment = fragments[place];
            let start = clock;
            clock += fragment.time + fragment.breakpoint + wait.amount;
            debug_assert!(clock <= TICKS_MAX, "a finished plan was checked for overflow");
            PlannedFragment {
                index: FragmentIndex(place as u32),
                start,
                end: clock,
                propagated: wait.amount,
                cause: (wait.amount > 0).then(|| Cause {
                    execution: ExecutionIndex(wait.execution),
                    fragment: FragmentIndex(wait.fragment),
                    process: fragments[place + 1].process,
                }),
            }
        })
    }
}

/// Why there is no delayed execution.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// The literal algorithm went round in circles.
    #[error("the algorithm as printed does not terminate on this input (given up at step {steps})")]
    Nontermination {
        /// The step that was not taken.
        steps: u64,
    },
    /// `Virtual` was asked to plan a fragment that takes no time.
    #[error(
        "execution \"{execution}\" fragment {fragment} takes no time, which mode virtual cannot plan; \
         use mode virtual-strict, or give it a time"
    )]
    ZeroTime {
        /// The execution's name.
        execution: String,
        /// Counted from 1.
        fragment: usize,
    },
    /// A delayed time does not fit.
    #[error("execution \"{execution}\" fragment {fragment}: delayed time passes 2^63-1 there")]
    Overflow {
        /// The execution's name.
        execution: String,
        /// Counted from 1.
        fragment: usize,
    },
}

impl PlanError {
    pub(super) fn overflow(program: &Program, execution: usize, fragment: usize) -> Self {
        Self::Overflow {
            execution: program.executions[execution].name.clone(),
            fragment: fragment + 1,
        }
    }

    pub(super) fn zero_time(program: &Program) -> Option<Self> {
        program.executions.iter().find_map(|execution| {
            let fragment = execution.fragments.iter().position(|f| f.time == 0)?;
            Some(Self::ZeroTime { execution: execution.name.clone(), fragment: fragment + 1 })
        })
    }
}
