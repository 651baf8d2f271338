//! The central debugger: one per session.
//!
//! [`logic`] decides and is pure: no async, no clocks, no I/O, no randomness.
//! [`driver`] runs it.

pub mod driver;
pub mod logic;
