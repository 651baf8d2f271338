//! What a satellite decides.

pub mod breakpoints;
pub mod clock;
pub mod permit;
mod satellite;
pub mod strand;

pub use satellite::{Mode, Output, Satellite, Verdict, Why};
