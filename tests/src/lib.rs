//! What the tests of several crates share.

pub mod decoders;
pub mod executions;
pub mod faults;
pub mod intrusion;
pub mod place;
pub mod puppet;
pub mod simulation;
pub mod small_disk;
pub mod svg;
pub mod tty;
pub mod waiting;
