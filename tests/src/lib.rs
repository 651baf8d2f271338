//! What the tests of several crates share.

pub mod executions;
pub mod simulation;
