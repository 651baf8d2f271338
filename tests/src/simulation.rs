//! The whole debugger in simulation: programs, a network, faults, and what must
//! hold all the same.
//!
//! A seed makes a [`program`] and a [`scenario`]; both are run in a [`world`],
//! once with the debugger and once without, and the [`checkers`] compare the two
//! [`trace`]s. A case that fails is made smaller by [`shrink`] and drawn by
//! [`picture`].

mod calls;
pub mod checkers;
mod debugger;
pub mod describe;
pub mod generate;
pub mod picture;
pub mod program;
pub mod scale;
pub mod scenario;
pub mod seeds;
pub mod shrink;
mod tasks;
pub mod trace;
pub mod world;
