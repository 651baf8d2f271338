//! What central decides, as pure state machines and functions.

pub mod algorithm_d;
