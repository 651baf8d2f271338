//! The whole debugger in simulation: programs, a network, faults, and what must
//! hold all the same.

mod calls;
pub mod checkers;
mod debugger;
pub mod generate;
pub mod picture;
pub mod program;
pub mod scenario;
mod tasks;
pub mod trace;
pub mod world;
