//! The central debugger: one per session.
//!
//! [`logic`] decides and is pure: no async, no clocks, no I/O, no randomness.
//! [`driver`] runs it, and [`server`] puts it on a socket.

pub mod driver;
pub mod logic;
pub mod server;
