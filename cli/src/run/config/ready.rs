//! `ready = …` of a process.

use std::collections::{BTreeMap, BTreeSet};

use regex::{Regex, RegexBuilder};
use toml::Spanned;

use super::{Ready, TomlProcess, Wrong};

/// How large the regular expressions of a file may be, all together, and each: a few
/// letters can stand for gigabytes.
const ALL_BYTES_MAX: usize = 8 << 20;
const EACH_BYTES_MAX: usize = 1 << 20;

/// How long each may be: also what a parser makes of it takes memory.
const PATTERN_BYTES_MAX: usize = 1024;

/// The regular expressions of a file. Each is made once: many processes may wait for the
/// same line.
pub(super) struct Patterns<'a> {
    bytes_max: usize,
    made: BTreeMap<&'a str, Regex>,
}

impl<'a> Patterns<'a> {
    pub(super) fn of(processes: &'a [Spanned<TomlProcess>]) -> Self {
        let ready = processes.iter().filter_map(|process| process.get_ref().ready.as_ref());
        let patterns = ready.filter_map(|ready| ready.get_ref().strip_prefix("log:"));
        let different = patterns.collect::<BTreeSet<_>>().len().max(1);
        Self { bytes_max: (ALL_BYTES_MAX / different).min(EACH_BYTES_MAX), made: BTreeMap::new() }
    }

    fn made(&mut self, pattern: &'a str) -> Result<Regex, regex::Error> {
        if let Some(made) = self.made.get(pattern) {
            return Ok(made.clone());
        }
        let made = RegexBuilder::new(pattern).size_limit(self.bytes_max).build()?;
        self.made.insert(pattern, made.clone());
        Ok(made)
    }

    pub(super) fn parse(&mut self, ready: &'a Spanned<String>) -> Result<Ready, Wrong> {
        match ready.get_ref().split_once(':') {
            None if ready.get_ref() == "attached" => Ok(Ready::Attached),
            Some(("log", pattern)) if pattern.len() > PATTERN_BYTES_MAX => {
                let most = format!("a line is described by at most {PATTERN_BYTES_MAX} bytes");
                Err(Wrong::at(ready, most))
            }
            Some(("log", pattern)) => self.made(pattern).map(Ready::Log).map_err(|error| {
                // The last line says what is wrong; those above draw where.
                let error = error.to_string();
                let what = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                Wrong::at(ready, format!("{pattern:?} is not a regular expression: {what}"))
            }),
            Some(("tcp", address)) => match address.rsplit_once(':') {
                Some((host, port))
                    if !host.is_empty() && port.parse::<u16>().is_ok_and(|p| p > 0) =>
                {
                    Ok(Ready::Tcp(address.to_owned()))
                }
                _ => Err(Wrong::at(ready, format!("{address:?} is not HOST:PORT"))),
            },
            _ => {
                let message =
                    format!("{:?} is not log:REGEX, tcp:ADDR or attached", ready.get_ref());
                Err(Wrong::at(ready, message))
            }
        }
    }
}
