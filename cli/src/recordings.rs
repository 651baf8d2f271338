//! Commands for recordings: `ddbx recordings`, `ddbx inspect`, `ddbx verify`.

use std::path::Path;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use ddbx_recording::{OpenError, Recording, Tail};

use crate::exit::Failure;
use crate::text::one_line;

pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod verify;

const NAME_WIDTH_MAX: usize = 32;

fn open(path: &Path) -> Result<Recording, Failure> {
    Recording::open(path).map_err(|error| match error {
        OpenError::NotARecording(_) => {
            Failure::BadInput(format!("{error}; `ddbx recordings DIR` lists those in a directory"))
        }
        _ => Failure::Failed(error.to_string()),
    })
}

/// How a log ends, in a word; one that cannot be read to its end is damaged.
fn ending(tail: Option<Tail>) -> &'static str {
    match tail {
        Some(Tail::Closed) => "closed",
        Some(Tail::Open(_)) => "open",
        Some(Tail::Torn(_)) => "torn",
        None => "damaged",
    }
}

/// To the microsecond, and as the options that take a time read it.
fn time(length: Duration) -> String {
    format!("{}.{:06}s", length.as_secs(), length.subsec_micros())
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// Says on standard error what is remarkable about a recording.
fn remark(text: &str, is_wrong: bool) {
    let (word, colour) =
        if is_wrong { ("wrong:", AnsiColor::Red) } else { ("note:", AnsiColor::Yellow) };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    anstream::eprintln!("{style}{word}{style:#} {}", one_line(text));
}
