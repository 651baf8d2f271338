//! The debugger inside a process: it decides at every event of the program
//! whether it may happen now.
//!
//! [`logic`] decides and is pure: no async, no clocks, no I/O, no randomness.
//! [`driver`] runs it: a thread of its own, so that it answers even if the
//! program's runtime is stuck.

pub mod driver;
pub mod logic;
