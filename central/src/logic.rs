//! What central decides, as pure state machines and functions.

pub mod algorithm_d;
mod ask;
mod permits;
pub mod replay;
mod session;
mod stops;
mod topology;

pub use session::{Because, Central, Command};
