//! Why a condition has no answer.

use thiserror::Error;

use super::InvalidCondition;
use super::evaluate::STEPS_MAX;

/// Why a condition has no answer. The breakpoint does not stop then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EvaluationError {
    /// A value that has to be true or false is not.
    #[error("{0} is neither true nor false: compare it with something")]
    NotBoolean(&'static str),
    /// The arguments are not known where it was asked.
    #[error("`args` is not known at this event")]
    NoArgs,
    /// The result is not known where it was asked.
    #[error("`result` is known only at return and resume")]
    NoResult,
    /// A map has no such field.
    #[error("there is no field {0:?}: ask with has(…) first")]
    NoField(String),
    /// A list has no such element.
    #[error("there is no element {0}: ask for the size first")]
    NoElement(i128),
    /// An operator or a function that these values do not have.
    #[error("`{operation}` does not work on {values}")]
    Types {
        /// The operator or function.
        operation: &'static str,
        /// The kinds of the values.
        values: String,
    },
    /// A number that fits into no integer, or a division by zero.
    #[error("`{0}` gives a number that is too large, or none")]
    Number(&'static str),
    /// The budget is spent.
    #[error("the condition takes more than {STEPS_MAX} steps: make it simpler")]
    TooLong,
    /// The condition came from elsewhere and cannot be read.
    #[error(transparent)]
    Invalid(#[from] InvalidCondition),
    /// Too many conditions wait to be evaluated.
    #[error("too many conditions wait to be evaluated: use fewer, or more precise breakpoints")]
    Busy,
    /// The evaluator has no thread, or has ended.
    #[error("conditions are not evaluated any more in this process")]
    Ended,
    /// The evaluation failed in a way that it should not.
    #[error("the evaluation of the condition panicked: write it in another way")]
    Panicked,
}
