//! Whole sessions with real processes: what a user does and sees, and what becomes of
//! the program when anything of the debugger dies.

#![allow(clippy::unwrap_used)]

mod asking;
mod bounds;
mod breakpoints;
mod cluster;
mod escapes;
mod faults;
mod formats;
mod holds;
mod intruders;
mod losses;
mod process;
mod recordings;
mod replays;
mod runs;
mod screen;
mod sentences;
mod sessions;
mod shop;
mod tampered;
mod tls;
mod troupe;
mod walks;
