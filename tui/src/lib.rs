//! The screen with which a person debugs: `ddbx-tui`.
//!
//! What is known and what was pressed is [`state`], which does nothing by itself. What it
//! looks like is drawn from that alone ([`view`]). A session is reached by `client`, the
//! terminal by `terminal`, and [`screen`] brings all of them together. `command` is what is
//! started from a shell.

mod client;
mod command;
pub mod keys;
pub mod recording;
pub mod screen;
pub mod state;
mod terminal;
pub mod text;
pub mod view;
pub mod words;

pub use command::main;
pub use screen::{Failure, Options, run, run_recording};
