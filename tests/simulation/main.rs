//! The whole debugger through many schedules: see `ddbx_tests::simulation`, and
//! `cargo run --release -p ddbx-tests --bin simulate -- --help` for more of it.

#![allow(clippy::unwrap_used)]

mod messages;
mod regressions;
mod sabotage;
mod schedules;
mod session;
mod why;
