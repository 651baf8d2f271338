//! Takes the pictures of the screen that the README shows: starts the demo on a terminal,
//! presses keys as a person would, and draws what is there.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use clap::Parser;
use ddbx_tests::place::Place;
use ddbx_tests::svg::svg;
use ddbx_tests::tty::Tty;
use ddbx_tests::waiting::try_until;

/// Take pictures of the screens Processes, Holds and Space-time of `ddbx demo`
#[derive(Parser)]
#[command(name = "screenshots", version, after_help = EXAMPLES)]
struct Cli {
    /// Where processes.svg, holds.svg and space-time.svg are written
    #[arg(value_name = "DIR", default_value = "docs")]
    dir: PathBuf,
}

const EXAMPLES: &str = "Examples:
  cargo build -p ddbx-tests --bins                            what it takes pictures of
  cargo run -p ddbx-tests --bin screenshots                   into docs/
  cargo run -p ddbx-tests --bin screenshots -- /tmp/pictures  to look at them first

Exit codes:
  0 all pictures are there   1 a screen did not come, or a picture cannot be written
  2 bad input";

/// As much as is readable on a page.
const COLUMNS: u16 = 120;

/// How many lines the screens need.
const PROCESSES: u16 = 15;
const HOLDS: u16 = 18;
const SPACE_TIME: u16 = 25;

/// How often a person would press a key to come somewhere.
const PRESSES_MAX: usize = 60;

/// The program that is photographed, beside this one.
const PROGRAM: &str = "ddbx-under-test";

fn main() -> ExitCode {
    match take_all(&Cli::parse().dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn take_all(dir: &Path) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|why| format!("cannot make {}: {why}", dir.display()))?;
    let program = program()?;
    let place = Place::new().map_err(|why| {
        format!("cannot make a temporary directory: {why}; is there room, and is TMPDIR right?")
    })?;
    let mut command = place.command(program);
    command.arg("demo").env_remove("NO_COLOR");
    let mut camera = Camera { tty: Tty::start(&command, (COLUMNS, SPACE_TIME)), dir };
    camera.takes_pictures().map_err(|why| {
        format!("{why}\non the terminal:\n{}\nis the machine busy? try again", camera.tty.text())
    })
}

fn program() -> Result<PathBuf, String> {
    let here = env::current_exe().map_err(|why| format!("cannot find this program: {why}"))?;
    let program = here.with_file_name(PROGRAM);
    match program.exists() {
        true => Ok(program),
        false => Err(format!(
            "{} is not there; build it with `cargo build -p ddbx-tests --bins`",
            program.display()
        )),
    }
}

/// Presses keys, looks, and takes pictures.
struct Camera<'a> {
    tty: Tty,
    dir: &'a Path,
}

impl Camera<'_> {
    fn takes_pictures(&mut self) -> Result<(), String> {
        let is_busy = |shown: &str| number(shown, "traffic", 2).is_some_and(|clock| clock > 3.0);
        self.until("the shop is open for some seconds", is_busy)?;
        self.breaks()?;
        // First, and at once: what happened before the hold is still on the screen.
        self.selects_an_event()?;
        self.takes("space-time", SPACE_TIME)?;

        self.types("1");
        self.until("processes", |shown| shown.contains("rate/s"))?;
        let selected = |shown: &str| Some(line(shown, "▸")?.split(' ').next()?.to_owned());
        self.presses("j", "inventory is selected", selected, |row| row == "▸inventory")?;
        self.takes("processes", PROCESSES)?;

        self.types("2");
        self.until("holds", |shown| shown.contains(" still "))?;
        self.takes("holds", HOLDS)?;
        self.leaves()
    }

    /// One that has a past and a future, while inventory is held.
    fn selects_an_event(&mut self) -> Result<(), String> {
        self.types("5");
        let is_held = |shown: &str| number(shown, "held", 1).is_some_and(|seconds| seconds > 0.5);
        self.until("inventory is held", is_held)?;
        self.types(" ");
        let foot = |shown: &str| line(shown, "●").map(str::to_owned);
        self.until("an event is selected", |shown| {
            foot(shown).is_some_and(|it| it.contains(" before "))
        })?;
        let shown = self.tty.text();
        let towards = if shown.find(" orders ") < shown.find('▶') { "k" } else { "j" };
        self.presses(towards, "an event of orders is selected", foot, |foot| {
            foot.contains("│ orders:")
        })?;
        let has_future = |foot: &str| number(foot, "●", 4).is_some_and(|after| after >= 8.0);
        self.presses("h", "much comes after the selected event", foot, has_future)
    }

    /// A breakpoint, with the keys that `?` shows.
    fn breaks(&mut self) -> Result<(), String> {
        self.types("4b");
        self.until("where to set a breakpoint", |shown| shown.contains("where"))?;
        self.types("inventory:Inventory.reserve@arrive\r");
        self.until("a breakpoint", |shown| shown.contains("breakpoint 1 is set in"))
    }

    /// Lets everybody go on, and closes the shop.
    fn leaves(&mut self) -> Result<(), String> {
        self.types("q");
        self.until("it asks", |shown| shown.contains("Quit?"))?;
        self.types("c");
        self.until("the shop is closed", |shown| shown.contains("the shop is closed"))
    }

    fn types(&mut self, keys: &str) {
        self.tty.types(keys);
    }

    fn until(&self, what: &str, looks: impl Fn(&str) -> bool) -> Result<(), String> {
        self.tty.becomes(what, looks).map(drop).map_err(|vain| vain.to_string())
    }

    /// Presses a key again and again until what it changes is as wanted.
    fn presses(
        &mut self,
        key: &str,
        what: &str,
        changes: impl Fn(&str) -> Option<String>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        for _ in 0..PRESSES_MAX {
            let before = changes(&self.tty.text());
            if before.as_deref().is_some_and(&is_wanted) {
                return Ok(());
            }
            self.types(key);
            self.until(what, |shown| changes(shown) != before)?;
        }
        Err(format!("{key} was pressed {PRESSES_MAX} times in vain: {what}"))
    }

    /// Takes a picture of so many lines.
    fn takes(&self, name: &str, lines: u16) -> Result<(), String> {
        self.tty.resize(COLUMNS, lines);
        let is_drawn = |shown: &str| {
            let last: Vec<_> = shown.lines().skip(usize::from(lines) - 2).collect();
            matches!(last[..], [keys, status] if keys.contains("? help") && status.contains("│ live │"))
        };
        self.until("the whole screen, with its keys", is_drawn)?;
        // Two looks that are equal are not in the midst of drawing.
        let mut last = None;
        let still = try_until("a screen that stands still", || {
            let screen = self.tty.screen();
            let seen = Some(screen.contents_formatted());
            let is_still = last == seen && is_drawn(&screen.contents());
            last = seen;
            is_still.then_some(screen)
        });
        let picture = svg(&still.map_err(|vain| vain.to_string())?, "ddbx demo");
        let path = self.dir.join(name).with_extension("svg");
        fs::write(&path, picture)
            .map_err(|why| format!("cannot write {}: {why}", path.display()))?;
        println!("{}", path.display());
        Ok(())
    }
}

/// The first line that begins with this, without blanks before it.
fn line<'a>(shown: &'a str, begins: &str) -> Option<&'a str> {
    shown.lines().map(str::trim).find(|line| line.starts_with(begins))
}

/// A number in the line that begins with this, as its nth word.
fn number(shown: &str, begins: &str, nth: usize) -> Option<f64> {
    line(shown, begins)?.split_whitespace().nth(nth)?.parse().ok()
}
