//! The debugger inside each process.
//!
//! [`logic`] decides and is pure: no async, no clocks, no I/O, no randomness.
//! [`driver`] runs it, [`link`] keeps the way to central, [`recorder`] writes down
//! what happens, [`last_words`] how far a replay came, and [`shelf`] and [`roster`] keep what calls use again and again.

mod conditions;
pub mod driver;
pub mod last_words;
pub mod link;
pub mod logic;
pub mod recorder;
pub mod roster;
pub mod shelf;
