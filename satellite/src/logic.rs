//! What a satellite decides.

pub mod breakpoints;
pub mod clock;
mod inside;
pub mod permit;
mod process_hold;
mod satellite;
pub mod script;
mod stops;
pub mod strand;

pub use satellite::{Output, Satellite, Verdict, Why};
