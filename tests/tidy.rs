//! The tree keeps its own rules: maps name what exists, files stay readable,
//! pure logic stays pure, nothing is left behind.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// A file has one idea; past this length it has at least two.
const LINES_MAX: usize = 600;

/// What pure logic must not mention: it is given the time and told what happened.
const IMPURE: [&str; 11] = [
    "tokio",
    "async ",
    ".await",
    "Instant",
    "SystemTime",
    "std::net",
    "std::fs",
    "std::thread",
    "fastrand",
    "use rand",
    "HashMap",
];

/// What reads the clock on the wall, which can jump, and what it is read for there. No
/// decision depends on it: leases, deadlines, holds and delays are measured with a clock
/// that nobody can set.
const WALL_CLOCK: [(&str, &str); 5] = [
    ("rpc-shim/src/time.rs", "what a program asks for by `ddbx::time::now`"),
    ("rpc-shim/src/course.rs", "the date of a recording, for people"),
    ("cli/src/run/recording.rs", "the same"),
    ("cli/src/run/search.rs", "the name of a directory"),
    ("cli/src/certs.rs", "from when until when certificates are good"),
];

#[test]
fn documents_name_paths_that_exist() {
    for document in ["README.md", "ARCHITECTURE.md"] {
        let text = read(&root().join(document));
        let mut named = 0;
        for path in paths_named_in(&text) {
            named += 1;
            assert!(root().join(&path).exists(), "{document} names {path}, which is not there");
        }
        assert!(named > 3, "{document} names only {named} paths: is the test reading it right?");
    }
}

#[test]
fn every_crate_is_on_the_map() {
    let map = read(&root().join("ARCHITECTURE.md"));
    for manifest in files().iter().filter(|path| path.ends_with("Cargo.toml")) {
        let folder = manifest.parent().unwrap().strip_prefix(root()).unwrap();
        let folder = folder.display().to_string();
        assert!(
            folder.is_empty() || map.contains(&format!("`{folder}/")),
            "ARCHITECTURE.md does not mention {folder}/"
        );
    }
}

#[test]
fn source_files_have_a_readable_length() {
    for path in sources() {
        let lines = read(&path).lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines: split it", path.display());
    }
}

#[test]
fn logic_is_pure() {
    let is_logic = |path: &PathBuf| path.iter().any(|part| part == "logic" || part == "logic.rs");
    let logic: Vec<_> = sources().into_iter().filter(is_logic).collect();
    assert!(!logic.is_empty());
    for path in logic {
        for (number, line) in (1..).zip(read(&path).lines()) {
            let code = line.split("//").next().unwrap_or_default();
            for word in IMPURE {
                assert!(
                    !code.contains(word),
                    "{}:{number} uses {word} in pure logic: pass it in from the driver",
                    path.display()
                );
            }
        }
    }
}

/// What SECURITY.md says of limits is what the code has: `NAME` in `path`, and its value.
#[test]
fn bounds_are_what_is_said_of_them() {
    let text = read(&root().join("SECURITY.md"));
    let rows = text.lines().filter(|line| line.starts_with('|') && line.contains("` in `"));
    let mut checked = 0;
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let said: u64 = cells[2].parse().unwrap_or_else(|_| panic!("no number: {row}"));
        let quoted: Vec<&str> = cells[3].split('`').collect();
        let (name, path) = (quoted[1], quoted[3]);
        let code = read(&root().join(path));
        let definition = code.lines().find_map(|line| line.split_once(&format!("const {name}: ")));
        let (_, rest) = definition.unwrap_or_else(|| panic!("{path} has no {name}"));
        let value = rest.split_once("= ").unwrap().1.trim_end_matches(';');
        assert_eq!(value_of(value), said, "{name} in {path} is {value}");
        checked += 1;
    }
    assert!(checked > 20, "only {checked} rows: is the test reading it right?");
}

/// Of `64 * 1024`, `1 << 18` or `1_024`.
fn value_of(expression: &str) -> u64 {
    let number = |text: &str| text.trim().replace('_', "").parse::<u64>().unwrap();
    match (expression.split_once("<<"), expression.split_once(" * ")) {
        (Some((left, right)), _) => number(left) << number(right),
        (None, Some((left, right))) => number(left) * value_of(right),
        (None, None) => number(expression),
    }
}

#[test]
fn no_decision_depends_on_a_clock_that_can_jump() {
    let shipped = ["protocol", "rpc-shim", "satellite", "central", "recording", "tui", "cli"];
    let folders = shipped.map(|folder| root().join(folder).join("src"));
    let words = ["SystemTime", "UNIX_EPOCH", "OffsetDateTime", "Utc::now", "ClockId::Realtime"];
    let mut reading = Vec::new();
    for path in sources() {
        let is_shipped = folders.iter().any(|folder| path.starts_with(folder));
        let text = read(&path);
        if is_shipped && words.iter().any(|word| text.contains(word)) {
            reading.push(path.strip_prefix(root()).unwrap().display().to_string());
        }
    }
    reading.sort();
    let mut known = WALL_CLOCK.map(|(path, _)| path.to_owned());
    known.sort();
    assert_eq!(reading, known, "these files read the clock on the wall: say why, or use Instant");
}

/// Everywhere else the compiler refuses it.
#[test]
fn unsafe_code_is_in_two_files() {
    // Spelled in halves, or this file would find itself.
    let allowed = concat!("(unsafe", "_code");
    let has_some = |path: &PathBuf| read(path).contains(allowed);
    let mut with: Vec<PathBuf> = sources().into_iter().filter(has_some).collect();
    with.sort();
    let known = ["cli/src/run/supervisor/batch.rs", "rpc-shim/src/seats/place.rs"];
    assert_eq!(with, known.map(|path| root().join(path)));
    assert!(read(&root().join("Cargo.toml")).contains(concat!("unsafe", "_code = \"deny\"")));
}

#[test]
fn nothing_is_left_behind() {
    // Spelled in halves, or this file would find itself.
    let marks =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("#[ig", "nore")];
    for path in sources() {
        for (number, line) in (1..).zip(read(&path).lines()) {
            for mark in marks {
                assert!(!line.contains(mark), "{}:{number} has {mark}", path.display());
            }
        }
    }
}

#[test]
fn ci_runs_the_test_command_of_the_readme() {
    let command = "cargo test --workspace";
    for file in ["README.md", ".ci/run"] {
        assert!(read(&root().join(file)).contains(command), "{file} lacks `{command}`");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Everything between backticks or in a link that looks like a path of this tree.
fn paths_named_in(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let linked = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    quoted
        .chain(linked)
        .filter(|word| word.contains('/') || word.ends_with(".md") || word.ends_with(".toml"))
        .filter(|word| {
            let elsewhere = ["http", "$", "#", "<", "unix:", "tcp:", "target/"];
            !word.contains(char::is_whitespace) && !elsewhere.iter().any(|e| word.starts_with(e))
        })
        .filter(|word| !word.contains(['*', '…', '{', '(']))
        .map(str::to_owned)
        .collect()
}

fn sources() -> Vec<PathBuf> {
    files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}

fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if path.is_file() {
                found.push(path);
            }
        }
    }
    found
}
