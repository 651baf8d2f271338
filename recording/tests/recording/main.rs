//! Recordings, written and read back, in good order and in bad.

#![allow(clippy::unwrap_used)]

mod black_box;
mod damage;
mod directory;
mod failing;
mod golden;
mod live;
mod memory;
mod merged;
mod notes;
mod queue;
mod replayable;
mod round_trip;
mod seal;
mod sealed;
mod traffic;
mod verify;
