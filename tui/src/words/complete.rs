//! How a line of words could go on.

use clap::{Arg, CommandFactory};

use super::Line;
use crate::state::places::{self, matching};
use crate::state::session::Seen;

/// The line with each of what could stand at its end: a word, then what that word takes.
pub fn complete(line: &str, seen: &Seen) -> Vec<String> {
    let (before, last) = line.split_at(start_of_last(line));
    let Some(parts) = shlex::split(before) else { return Vec::new() };
    let last = last.trim_start_matches(['\'', '"']);
    let offers = match parts.split_first() {
        None => words(last),
        Some((word, parts)) => arguments(word, parts, last, seen),
    };
    offers
        .into_iter()
        .filter(|offer| offer != last)
        .map(|offer| format!("{before}{offer}"))
        .collect()
}

/// The words that have this text, with room behind those that take something.
pub(super) fn words(text: &str) -> Vec<String> {
    let line = Line::command();
    let words = line.get_subcommands().map(|word| {
        let room = if word.get_arguments().next().is_some() { " " } else { "" };
        format!("{}{room}", word.get_name())
    });
    matching(text, words)
}

/// Where the last part of a line begins: behind white space that is not quoted.
fn start_of_last(line: &str) -> usize {
    let mut start = 0;
    let mut quote = None;
    let mut is_escaped = false;
    for (at, character) in line.char_indices() {
        match (quote, character) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (Some(open), _) if open == character => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, _) if character.is_whitespace() => start = at + character.len_utf8(),
            _ => {}
        }
    }
    start
}

/// What a word takes behind these parts.
fn arguments(word: &str, parts: &[String], last: &str, seen: &Seen) -> Vec<String> {
    let line = Line::command();
    let Some(word) = line.find_subcommand(word) else { return Vec::new() };
    let option = |part: &String| {
        let name = part.strip_prefix("--")?;
        word.get_arguments().find(|arg| arg.get_long() == Some(name))
    };
    // What is not an option or its value is in its place.
    let mut nth = 0;
    let mut open = None;
    for part in parts {
        match (open.take(), option(part)) {
            (Some(_), _) => {}
            (None, Some(arg)) => open = Some(arg).filter(|arg| arg.get_action().takes_values()),
            (None, None) => nth += 1,
        }
    }
    if let Some(arg) = open {
        return values(arg, last, seen);
    }
    let mut offers = match word.get_positionals().nth(nth) {
        Some(arg) if !last.starts_with('-') => values(arg, last, seen),
        _ => Vec::new(),
    };
    if offers.is_empty() || last.is_empty() {
        let unused = word.get_arguments().filter_map(|arg| Some(format!("--{}", arg.get_long()?)));
        let unused = unused.filter(|long| !parts.contains(long));
        offers.extend(matching(last, unused).into_iter().filter(|long| long.starts_with(last)));
    }
    offers
}

/// What an argument can be.
fn values(arg: &Arg, last: &str, seen: &Seen) -> Vec<String> {
    let breakpoints = || seen.breakpoints.iter().map(|view| view.id.to_string());
    let holds = || seen.holds.iter().map(|hold| hold.id.to_string());
    match arg.get_id().as_str() {
        "spec" => places::complete(last, seen),
        "id" => starting(last, breakpoints()),
        "hold" => starting(last, holds()),
        "process" | "only" => places::processes(last, seen),
        "whom" => {
            let mut offers = starting(last, holds());
            offers.extend(places::processes(last, seen));
            offers
        }
        _ => {
            let values = arg.get_possible_values();
            matching(last, values.iter().map(|value| value.get_name().to_owned()))
        }
    }
}

/// Numbers go on at their end only.
fn starting(text: &str, numbers: impl Iterator<Item = String>) -> Vec<String> {
    numbers.filter(|number| number.starts_with(text)).collect()
}
