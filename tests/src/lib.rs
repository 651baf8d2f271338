//! What the tests of several crates share.

pub mod executions;
pub mod place;
pub mod simulation;
pub mod svg;
pub mod tty;
pub mod waiting;
