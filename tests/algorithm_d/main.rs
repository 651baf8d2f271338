//! Algorithm D offline against its specification.

#![allow(clippy::unwrap_used)]

mod golden;
mod invariants;
mod properties;
mod small_cases;
