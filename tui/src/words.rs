//! Commands in the words of the command line.

use crate::state::session::Seen;
use crate::state::{Command, State};

/// Does what a line says.
pub fn run(state: &mut State, line: &str) -> Vec<Command> {
    state.say(format!("no such command: {line}"));
    Vec::new()
}

/// How a line could go on.
pub fn complete(_line: &str, _seen: &Seen) -> Vec<String> {
    Vec::new()
}
