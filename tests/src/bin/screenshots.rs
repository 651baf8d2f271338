//! Takes the pictures of the screen that the README shows: starts the demo on a terminal,
//! presses keys as a person would, and draws what is there.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use clap::Parser;
use ddbx_tests::place::Place;
use ddbx_tests::svg::svg;
use ddbx_tests::tty::Tty;

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

/// Columns and lines: as much as is readable on a page.
const SIZE: (u16, u16) = (110, 30);

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
    let mut camera = Camera { tty: Tty::start(&command, SIZE), dir };
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
        self.until("the shop is open", |shown| shown.contains("traffic "))?;
        self.breaks()?;

        self.types("1");
        let all_wait = |shown: &str| shown.contains("held") && shown.matches("waits").count() >= 3;
        self.until("inventory is held, and others wait", all_wait)?;
        self.takes("processes", "ddbx demo: processes")?;

        self.types("2");
        self.until("who waits for whom", |shown| shown.matches("waits for hold").count() >= 3)?;
        self.takes("holds", "ddbx demo: holds")?;

        self.types("5");
        self.until("lanes", |shown| shown.contains("follows"))?;
        self.takes("space-time", "ddbx demo: space-time")?;
        self.leaves()
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

    fn takes(&self, name: &str, title: &str) -> Result<(), String> {
        let path = self.dir.join(name).with_extension("svg");
        fs::write(&path, svg(&self.tty.screen(), title))
            .map_err(|why| format!("cannot write {}: {why}", path.display()))?;
        println!("{}", path.display());
        Ok(())
    }
}
