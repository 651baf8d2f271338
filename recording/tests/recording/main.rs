//! Recordings, written and read back, in good order and in bad.

#![allow(clippy::unwrap_used)]

mod black_box;
mod damage;
mod directory;
mod failing;
mod golden;
mod live;
mod memory;
mod queue;
mod round_trip;
mod traffic;
mod verify;
