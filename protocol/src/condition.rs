//! Conditions of breakpoints, as people write them after `--if`: CEL over `args`,
//! `result` (at return and resume), `watch`, `process` and `control`.
//!
//! An expression is data from outside, and it is evaluated inside the program that
//! is being debugged. So it is small (`limits`), it is read by the parser of the
//! crate `cel` on a thread with a deep stack (`reader`), and it is evaluated here
//! with a budget (`evaluate`): `args.list.map(x, args.list)` over 64 KiB of
//! arguments takes 50 GB in the interpreter of that crate, which copies values and
//! counts nothing. Ours borrows the facts and stops when the budget is spent.
//!
//! What is left of CEL: fields, indices, operators, lists, `has`, `size`, `contains`,
//! `startsWith`, `endsWith`, `int`, `double`, `string`, and `all`, `exists`,
//! `exists_one`, `filter` and `map`, not inside each other. There is one type of
//! integer, and integers and doubles can be mixed: JSON does not keep them apart.

mod error;
mod evaluate;
mod evaluator;
mod limits;
mod program;
mod reader;
#[cfg(test)]
mod tests;
mod value;

use std::fmt;
use std::str::FromStr;
use std::thread;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use error::EvaluationError;
pub use evaluator::Evaluator;

/// The stack for the parser, which takes 2 MiB in a debug build for what the limits
/// let through, and for dropping facts, which may be nested deeply. It is only
/// reserved: what is not touched costs nothing.
#[doc(hidden)]
pub const STACK_BYTES: usize = 64 << 20;

/// When a breakpoint stops: an expression that can be read, or, if it came over a
/// wire, one that can be tried without harm.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Condition(String);

impl Condition {
    /// Reads an expression to the end, and says what is wrong with it and where.
    pub fn check(text: &str) -> Result<Self, InvalidCondition> {
        limits::check(text)?;
        thread::scope(|scope| {
            let reader = thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, || reader::read(text).map(drop))
                .map_err(|_| InvalidCondition::new(text, 0, What::NoThread))?;
            reader.join().unwrap_or_else(|_| Err(InvalidCondition::new(text, 0, What::Parser)))
        })?;
        Ok(Self(text.to_owned()))
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reads and evaluates an expression on this thread, which needs a deep stack. For fuzzers,
/// which look at one thread: all others have an [`Evaluator`].
#[doc(hidden)]
pub fn holds_here(text: &str, facts: &Facts) -> Result<bool, EvaluationError> {
    limits::check(text)?;
    evaluate::evaluate(&reader::read(text)?, facts)
}

impl FromStr for Condition {
    type Err = InvalidCondition;

    fn from_str(text: &str) -> Result<Self, InvalidCondition> {
        Self::check(text)
    }
}

/// Looks at length and nesting only: whoever sent it has checked the rest.
impl TryFrom<String> for Condition {
    type Error = InvalidCondition;

    fn try_from(text: String) -> Result<Self, InvalidCondition> {
        limits::check(&text)?;
        Ok(Self(text))
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> Self {
        condition.0
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a condition sees of the event that it is asked about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The arguments of the call; at a point, the object of the values given there.
    pub args: Option<serde_json::Value>,
    /// What the call returned: known at return and resume.
    pub result: Option<serde_json::Value>,
    /// The values that the process watches, by name.
    pub watch: serde_json::Map<String, serde_json::Value>,
    /// The name of the process.
    pub process: String,
    /// The control.
    pub control: String,
}

/// A condition that cannot be used; shown with a mark under the place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}\n  {text}\n  {}^", " ".repeat(self.text[..self.at].chars().count()))]
pub struct InvalidCondition {
    text: String,
    at: usize,
    what: What,
}

impl InvalidCondition {
    fn new(text: &str, at: usize, what: What) -> Self {
        Self { text: text.to_owned(), at: text.floor_char_boundary(at), what }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum What {
    #[error("a condition has at most {} bytes; this is what fits", limits::BYTES_MAX)]
    TooLong,
    #[error("a condition cannot contain control characters")]
    Character,
    #[error("a condition has at most {} levels of brackets and of `? :`", limits::LEVELS_MAX)]
    TooDeep,
    #[error("this text does not end: close the quotes")]
    OpenText,
    #[error("this is not an expression: {0}")]
    Syntax(String),
    #[error("`{0}` is not known: a condition sees args, result, watch, process and control")]
    Name(String),
    #[error(
        "`{0}` is not known, or not with these arguments: there are has(a.b), size, contains, \
         startsWith, endsWith, int, double, string, all, exists, exists_one, filter and map"
    )]
    Function(String),
    #[error("first a name for the element: list.exists(x, x > 1)")]
    Element,
    #[error("has asks for a field: has(args.name)")]
    Has,
    #[error("no all, exists, exists_one, filter or map inside another one")]
    Nested,
    #[error("maps, structs and bytes cannot be written here: compare field by field")]
    Literal,
    #[error("a condition is true or false, and this is neither: compare it with something")]
    NotBoolean,
    #[error("the parser failed on this condition: write it in another way")]
    Parser,
    #[error("no thread could be started to read this condition: try again")]
    NoThread,
}
