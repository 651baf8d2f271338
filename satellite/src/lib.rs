//! The debugger inside a process: it decides at every event of the program
//! whether it may happen now.
//!
//! [`logic`] decides and is pure: no async, no clocks, no I/O, no randomness.

pub mod logic;
