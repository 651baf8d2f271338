//! What a test can do with a session, one subject per file.

#![allow(clippy::unwrap_used)]

#[path = "../services/mod.rs"]
mod services;

mod breakpoints;
mod conditions;
mod endings;
mod inside;
mod names;
mod points;
mod redaction;
mod time;
