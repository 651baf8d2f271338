//! `ddbx.toml`: which processes a run has, and in which order they start.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{self, Path, PathBuf};

use ddbx_protocol::ProcessName;
use regex::Regex;
use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use ready::Patterns;

mod ready;

/// A file may be this large; beyond it something else was meant.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// A run may have this many processes, replicas included.
const PROCESSES_MAX: usize = 1000;

/// What `ddbx.toml` says, checked: names are unique and nobody waits for himself.
#[derive(Clone, Debug)]
pub struct Config {
    /// The name of the session, if the file gives one.
    pub session: Option<String>,
    /// In the order of the file.
    pub processes: Vec<Process>,
    /// The file itself, for whoever wants to run the same again.
    pub text: String,
}

/// One `[[process]]`.
#[derive(Clone, Debug)]
pub struct Process {
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    /// Added to the environment of the run.
    pub env: BTreeMap<String, String>,
    /// Where it runs; absolute.
    pub dir: PathBuf,
    /// When those that start after it may start.
    pub ready: Ready,
    /// The first replicas of those that must be ready, all of them, before it starts.
    pub after: Vec<ProcessName>,
    /// One name per replica, never none: `inventory`, `inventory#2`, …
    pub replicas: Vec<ProcessName>,
    /// Whether the run is over, with its exit code, as soon as it exits.
    pub ends_run: bool,
}

/// When a process is ready.
#[derive(Clone, Debug)]
pub enum Ready {
    /// As soon as it has started.
    Started,
    /// When a line of its output matches.
    Log(Regex),
    /// When something accepts connections at this address.
    Tcp(String),
    /// When its satellite is connected to the session.
    Attached,
}

/// Why a `ddbx.toml` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {message}")]
pub struct ConfigError {
    /// The file, and line and column where they are known.
    pub place: String,
    /// What is wrong there.
    pub message: String,
}

impl Config {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let error = |message| ConfigError { place: path.display().to_string(), message };
        let mut bytes = Vec::new();
        // One byte over the limit is enough to know that it is over.
        File::open(path)
            .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
            .map_err(|cause| error(format!("cannot read it: {cause}")))?;
        let text = String::from_utf8(bytes).map_err(|cause| error(format!("not TOML: {cause}")))?;
        Self::parse(&text, path)
    }

    /// Checks the text of a file; what is relative in it is relative to `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        if text.len() as u64 > FILE_BYTES_MAX {
            let message = "is over 256 KiB, which no list of processes needs".to_owned();
            return Err(ConfigError { place: path.display().to_string(), message });
        }
        let whole = text;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let in_file = |wrong: Wrong| wrong.in_file(text, path);
        let file: TomlFile = toml::from_str(text).map_err(|error| {
            in_file(Wrong { at: error.span(), message: error.message().into() })
        })?;
        let absolute = path::absolute(path)
            .map_err(|error| in_file(Wrong { at: None, message: error.to_string() }))?;
        let folder = absolute.parent().unwrap_or(&absolute);
        check_names(&file.process).map_err(in_file)?;
        check_count(&file.process).map_err(in_file)?;
        let mut patterns = Patterns::of(&file.process);
        let checked =
            file.process.iter().map(|process| process.get_ref().checked(folder, &mut patterns));
        let processes = checked.collect::<Result<Vec<_>, _>>().map_err(in_file)?;
        check_order(&file.process).map_err(in_file)?;
        Ok(Self { session: file.session, processes, text: whole.to_owned() })
    }
}

impl Process {
    /// The name of the process, which is that of its first replica.
    pub fn name(&self) -> &ProcessName {
        &self.replicas[0]
    }
}

impl Ready {
    /// What a process of this kind is waited for, for people.
    pub fn awaited(&self) -> String {
        match self {
            Self::Started => "its start".to_owned(),
            Self::Log(line) => format!("a line that matches {:?}", line.as_str()),
            Self::Tcp(address) => format!("connections at {address}"),
            Self::Attached => "its satellite to attach".to_owned(),
        }
    }
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlFile {
    session: Option<String>,
    #[serde(default)]
    process: Vec<Spanned<TomlProcess>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlProcess {
    name: Spanned<String>,
    command: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    env: BTreeMap<String, Spanned<String>>,
    dir: Option<PathBuf>,
    ready: Option<Spanned<String>>,
    #[serde(default)]
    after: Vec<Spanned<String>>,
    replicas: Option<Spanned<u32>>,
    #[serde(default)]
    ends_run: bool,
}

impl TomlProcess {
    fn name(&self) -> &str {
        self.name.get_ref()
    }

    fn checked<'a>(&'a self, folder: &Path, patterns: &mut Patterns<'a>) -> Result<Process, Wrong> {
        let Self { command, env, dir, ready, after, ends_run, .. } = self;
        if command.get_ref().first().is_none_or(|program| program.get_ref().is_empty()) {
            return Err(Wrong::at(command, "the command is empty; it needs a program"));
        }
        for text in command.get_ref().iter().chain(env.values()) {
            if text.get_ref().contains('\0') {
                return Err(Wrong::at(text, "neither arguments nor variables can contain \\u0000"));
            }
        }
        for (variable, value) in env {
            if variable.is_empty() || variable.contains(['=', '\0']) {
                let message = format!("{variable:?} is not the name of a variable");
                return Err(Wrong::at(value, message));
            }
        }
        let name = |name: &Spanned<String>| {
            ProcessName::new(name.get_ref()).map_err(|error| Wrong::at(name, error.to_string()))
        };
        Ok(Process {
            command: command.get_ref().iter().map(|word| word.get_ref().clone()).collect(),
            env: env.iter().map(|(name, value)| (name.clone(), value.get_ref().clone())).collect(),
            dir: dir.as_ref().map_or(folder.to_owned(), |dir| folder.join(dir)),
            ready: ready.as_ref().map_or(Ok(Ready::Started), |ready| patterns.parse(ready))?,
            after: after.iter().map(name).collect::<Result<_, _>>()?,
            replicas: self.replica_names()?,
            ends_run: *ends_run,
        })
    }

    fn replica_names(&self) -> Result<Vec<ProcessName>, Wrong> {
        let count = match &self.replicas {
            None => 1,
            Some(count) if *count.get_ref() == 0 => {
                return Err(Wrong::at(count, "replicas counts all of them: at least 1"));
            }
            Some(count) if *count.get_ref() as usize > PROCESSES_MAX => {
                return Err(Wrong::at(count, format!("replicas can be at most {PROCESSES_MAX}")));
            }
            Some(count) => *count.get_ref(),
        };
        let name = |replica| match replica {
            1 => ProcessName::new(self.name()),
            _ => ProcessName::new(format!("{}#{replica}", self.name())),
        };
        let names: Result<_, _> = (1..=count).map(name).collect();
        names.map_err(|error| Wrong::at(&self.name, error.to_string()))
    }
}

/// How many there are, before there is a name for each. A single number that is too large is
/// refused where it stands.
fn check_count(processes: &[Spanned<TomlProcess>]) -> Result<(), Wrong> {
    let replicas = processes.iter().filter_map(|process| match &process.get_ref().replicas {
        None => Some(1),
        Some(count) => Some(*count.get_ref() as usize).filter(|count| *count <= PROCESSES_MAX),
    });
    if replicas.sum::<usize>() > PROCESSES_MAX {
        let message = format!("a run has at most {PROCESSES_MAX} processes, replicas included");
        return Err(Wrong { at: None, message });
    }
    Ok(())
}

fn check_names(processes: &[Spanned<TomlProcess>]) -> Result<(), Wrong> {
    if processes.is_empty() {
        return Err(Wrong { at: None, message: "has no [[process]] to run".to_owned() });
    }
    let mut seen = BTreeSet::new();
    for process in processes {
        let name = &process.get_ref().name;
        if name.get_ref().contains('#') {
            let message = "a process name cannot contain '#', which numbers replicas";
            return Err(Wrong::at(name, message));
        }
        if !seen.insert(name.get_ref()) {
            let message = format!("two processes are called {:?}", name.get_ref());
            return Err(Wrong::at(name, message));
        }
    }
    Ok(())
}

/// Everybody must get his turn: removes again and again whoever waits for
/// nobody that is left. Among those who stay, each waits for one who stays, so
/// following them leads into a circle.
fn check_order(processes: &[Spanned<TomlProcess>]) -> Result<(), Wrong> {
    let mut left: BTreeMap<&str, &TomlProcess> =
        processes.iter().map(|process| (process.get_ref().name(), process.get_ref())).collect();
    for process in left.values() {
        if let Some(name) =
            process.after.iter().find(|name| !left.contains_key(name.get_ref().as_str()))
        {
            let message = format!("there is no process {:?} to start after", name.get_ref());
            return Err(Wrong::at(name, message));
        }
    }
    loop {
        let waits = |process: &&TomlProcess| {
            process.after.iter().any(|name| left.contains_key(name.get_ref().as_str()))
        };
        let staying: BTreeMap<_, _> =
            left.iter().filter(|(_, process)| waits(process)).map(|(n, p)| (*n, *p)).collect();
        if staying.len() == left.len() {
            break;
        }
        left = staying;
    }
    let Some(mut name) = left.keys().next().copied() else {
        return Ok(());
    };
    let mut path = Vec::new();
    while !path.contains(&name) {
        path.push(name);
        let after = left[name].after.iter().find(|name| left.contains_key(name.get_ref().as_str()));
        name = after.map_or(name, |name| name.get_ref());
    }
    path.drain(..path.iter().position(|earlier| *earlier == name).unwrap_or(0));
    path.push(name);
    let message = format!("nobody can start first: {}", path.join(" after "));
    Err(Wrong { at: left[name].after.first().map(Spanned::span), message })
}

/// What is wrong, and where in the text.
struct Wrong {
    at: Option<Range<usize>>,
    message: String,
}

impl Wrong {
    fn at<T>(part: &Spanned<T>, message: impl Into<String>) -> Self {
        Self { at: Some(part.span()), message: message.into() }
    }

    fn in_file(self, text: &str, path: &Path) -> ConfigError {
        let mut place = path.display().to_string();
        if let Some(before) = self.at.and_then(|at| text.get(..at.start)) {
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
            place += &format!(":{line}:{column}");
        }
        ConfigError { place, message: self.message }
    }
}

#[cfg(test)]
mod tests;
