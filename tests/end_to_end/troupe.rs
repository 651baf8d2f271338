//! Programs in which luck decides, recorded and replayed.

use std::fs;

use serde_json::json;

use crate::cluster::{Cluster, Done};
use crate::process::Process;

/// How often a recording is replayed, unless `DDBX_REPLAYS` says otherwise.
const REPLAYS: usize = 4;

/// How often a program is recorded until luck has decided otherwise.
const LUCK: usize = 40;

/// A process of a program.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What `troupe` is told.
    pub words: &'a [&'a str],
    /// Who must listen before it starts.
    pub after: &'a [&'a str],
    /// How it goes on.
    pub is: Is,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Is {
    /// Listens, and goes on for ever.
    Server,
    /// The same, twice.
    TwoServers,
    /// Ends the run.
    Client,
    /// Takes part as long as it likes.
    Bystander,
}

impl<'a> Part<'a> {
    /// A process that does nothing but play the part after which it is called.
    pub const fn of(name: &'a str, is: Is, after: &'a [&'a str]) -> Self {
        Self { name, words: &[], after, is }
    }

    fn text(&self, cluster: &Cluster) -> String {
        let mut words = vec![env!("CARGO_BIN_EXE_troupe"), cluster.dir().to_str().unwrap()];
        let own = [self.name];
        words.extend(if self.words.is_empty() { &own[..] } else { self.words });
        let more = match self.is {
            Is::Server => "ready = 'log:listening'",
            Is::TwoServers => "ready = 'log:listening'\nreplicas = 2",
            Is::Client => "ends_run = true",
            Is::Bystander => "",
        };
        let (name, words, after) = (self.name, json!(words), json!(self.after));
        format!("[[process]]\nname = '{name}'\ncommand = {words}\nafter = {after}\n{more}\n")
    }
}

/// A program on its own stage.
pub struct Play {
    pub cluster: Cluster,
}

impl Play {
    pub fn new(parts: &[Part<'_>]) -> Self {
        let play = Self { cluster: Cluster::new() };
        play.write("ddbx.toml", parts);
        play
    }

    /// Writes another file that can be run.
    pub fn write(&self, file: &str, parts: &[Part<'_>]) {
        let parts: String = parts.iter().map(|part| part.text(&self.cluster)).collect();
        fs::write(self.cluster.path(file), format!("session = 'main'\n{parts}")).unwrap();
    }

    /// Runs `ddbx` to its end, which comes soon.
    pub fn ddbx(&self, words: &[&str]) -> Done {
        let mut process = Process::start(&mut self.cluster.ddbx_command(words));
        let code = process.end().code().unwrap_or(-1);
        Done { code, out: process.printed(), err: process.complained() }
    }

    /// Records the program: what its processes print.
    pub fn record(&self, recording: &str) -> Vec<String> {
        let done = self.ddbx(&["run", "--headless", "--record", recording]);
        assert_eq!(done.code, 0, "{done:?}");
        lines(&done.out)
    }

    /// Replays a recording.
    pub fn replay(&self, recording: &str, more: &[&str]) -> Done {
        self.ddbx(&[&["replay", "--headless", recording], more].concat())
    }

    /// Replays a recording, some times: it is identical each time, and prints this.
    pub fn comes_again(&self, recording: &str, printed: &[String]) {
        for nth in 1..=replays() {
            let done = self.replay(recording, &[]);
            assert_eq!(done.code, 0, "replay {nth}: {done:?}");
            assert!(is_identical(&done), "replay {nth}: {done:?}");
            assert_eq!(lines(&done.out), printed, "replay {nth}");
        }
    }
}

/// Records a program until it prints something else, and replays both.
pub fn luck_comes_again(parts: &[Part<'_>]) {
    let play = Play::new(parts);
    let first = play.record("first");
    let name = |nth| format!("other-{nth}");
    let (nth, other) = (0..LUCK)
        .map(|nth| (nth, play.record(&name(nth))))
        .find(|(_, other)| *other != first)
        .expect("there is luck in it");
    play.comes_again("first", &first);
    play.comes_again(&name(nth), &other);
}

pub fn is_identical(done: &Done) -> bool {
    let last = done.out.lines().last().unwrap_or_default();
    last.starts_with("replayed ") && last.ends_with(" events, identical")
}

/// What processes have printed; in which order they did is another matter.
pub fn lines(out: &str) -> Vec<String> {
    let varies = |line: &str| line.ends_with("listening") || line.contains("panicked at");
    let of_process = |line: &&str| line.contains(" | ") && !varies(line);
    let mut lines: Vec<String> = out.lines().filter(of_process).map(Into::into).collect();
    lines.sort();
    lines
}

/// How often.
pub fn replays() -> usize {
    let wanted = std::env::var("DDBX_REPLAYS").ok();
    wanted.map_or(REPLAYS, |number| number.parse().expect("a number"))
}

/// An account at a bank that asks an auditor.
pub const BANK: [Part<'static>; 3] = [
    Part::of("auditor", Is::Server, &[]),
    Part::of("bank", Is::Server, &["auditor"]),
    Part::of("customers", Is::Client, &["bank"]),
];

/// The same, with other words for the customers.
pub const fn bank_with(words: &'static [&'static str]) -> [Part<'static>; 3] {
    [BANK[0], BANK[1], Part { words, ..BANK[2] }]
}

/// Those who ask do not wait for long.
pub const LATE: [Part<'static>; 3] = [
    Part::of("leaf", Is::TwoServers, &[]),
    Part::of("relay", Is::Server, &["leaf"]),
    Part::of("askers", Is::Client, &["relay"]),
];
