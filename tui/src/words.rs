//! Commands in the words of the command line. What `ddbx` has for a session is defined
//! here, for both; `ddbx` adds which session is meant.

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};
use ddbx_protocol::HoldId;
use ddbx_protocol::control::Request;

use crate::keys::Action;
use crate::state::detail::About;
use crate::state::form::Fault;
use crate::state::{Command, Screen, State};

mod breakpoints;
mod complete;
mod events;
mod holds;
mod processes;

pub use breakpoints::{Break, Breaks, Delete, Disable, Enable, ScopeArg};
pub use complete::complete;
pub use events::Events;
pub use holds::{Bt, Continue, Holds, Release};
pub use processes::{Panic, Pause, Ps, Stop, Watch};

/// A line. Its words are not those of a shell, so there is no program before them.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_subcommand = true)]
struct Line {
    #[command(subcommand)]
    word: Word,
}

#[derive(Subcommand)]
enum Word {
    Break(Break),
    Breaks(Breaks),
    Enable(Enable),
    Disable(Disable),
    Delete(Delete),
    Holds(Holds),
    Bt(Bt),
    /// Say why somebody stands still
    Why(Why),
    Continue(Continue),
    Release(Release),
    Ps(Ps),
    Pause(Pause),
    Panic(Panic),
    Watch(Watch),
    Events(Events),
    Stop(Stop),
    /// Show what keys and words do
    Help,
    /// End the screen; the session goes on
    #[command(visible_alias = "q")]
    Quit,
}

#[derive(Args)]
struct Why {
    /// Which hold; without it, who is selected
    hold: Option<u64>,
}

/// The words of `ddbx` that do not ask a session, or that wait for it in scripts.
const IN_A_SHELL: &[&str] = &[
    "central",
    "certs",
    "completions",
    "demo",
    "inspect",
    "plan",
    "recordings",
    "replay",
    "run",
    "verify",
    "wait",
];

/// Whether a word of `ddbx` is understood here, or refused by its name.
pub fn is_known(word: &str) -> bool {
    Line::command().find_subcommand(word).is_some() || IN_A_SHELL.contains(&word)
}

/// How each word is used, and what it does, both in short.
pub fn list() -> Vec<(String, String)> {
    let mut line = Line::command();
    let words = line.get_subcommands_mut().map(|word| {
        let usage = word.render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").replace(" [OPTIONS]", "");
        let about = word.get_about().map(ToString::to_string).unwrap_or_default();
        (usage, about.split([':', ',', ';']).next().unwrap_or_default().to_owned())
    });
    words.collect()
}

/// Does what a line says.
pub fn run(state: &mut State, line: &str) -> Vec<Command> {
    let Some(parts) = shlex::split(line) else {
        state.say("this line does not end: close the quotes");
        return Vec::new();
    };
    let Some(first) = parts.first().cloned() else { return Vec::new() };
    match Line::try_parse_from(parts) {
        Ok(Line { word }) => word.run(state),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => Word::Help.run(state),
        Err(error) => {
            state.say(sentence(&first, &error));
            Vec::new()
        }
    }
}

/// What is wrong with a line.
fn sentence(first: &str, error: &clap::Error) -> String {
    if IN_A_SHELL.contains(&first) {
        return format!("{first} is not for the screen: use `ddbx {first}` in a shell");
    }
    if error.kind() == ErrorKind::InvalidSubcommand {
        let near = complete::words(first);
        let near: Vec<&str> = near.iter().map(|word| word.trim_end()).collect();
        return match near.as_slice() {
            [] => format!("there is no {first} here: `help` shows what there is"),
            near => format!("there is no {first} here: did you mean {}?", near.join(", ")),
        };
    }
    // What it is about, without how to use it.
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
}

impl Word {
    fn run(self, state: &mut State) -> Vec<Command> {
        let request = match self {
            Self::Breaks(_) => return show(state, Screen::Breakpoints),
            Self::Holds(_) => return show(state, Screen::Holds),
            Self::Ps(_) => return show(state, Screen::Processes),
            Self::Events(events) => {
                show(state, Screen::Events);
                if events.follow {
                    state.events_pane.follow();
                }
                state.filter(&events.only.unwrap_or_default());
                return Vec::new();
            }
            Self::Bt(Bt { hold }) => return about(state, About::Hold(HoldId(hold))),
            Self::Why(Why { hold: Some(hold) }) => return about(state, About::Why(HoldId(hold))),
            Self::Why(Why { hold: None }) => return state.act(Action::Why),
            Self::Watch(_) => return about(state, About::Watched),
            Self::Help => return state.act(Action::Help),
            Self::Quit => return state.act(Action::Quit),
            Self::Break(word) => match word.request() {
                Ok(request) => request,
                Err(error) => {
                    state.say(Fault::of(&error).what);
                    return Vec::new();
                }
            },
            Self::Enable(word) => word.request(),
            Self::Disable(word) => word.request(),
            Self::Delete(word) => word.request(),
            Self::Continue(word) => word.request(),
            Self::Release(word) => word.request(),
            Self::Pause(word) => word.request(),
            Self::Panic(word) => word.request(),
            Self::Stop(_) => Request::Stop,
        };
        if state.may_change() { vec![Command::Ask(request)] } else { Vec::new() }
    }
}

fn show(state: &mut State, screen: Screen) -> Vec<Command> {
    state.act(Action::Show(screen))
}

/// Shows more about something, if it is there.
fn about(state: &mut State, about: About) -> Vec<Command> {
    match about {
        About::Hold(id) | About::Why(id) if state.hold(id).is_none() => {
            state.say(format!("there is no hold {id}: `holds` shows who stands still"));
        }
        about => state.show(about),
    }
    Vec::new()
}
