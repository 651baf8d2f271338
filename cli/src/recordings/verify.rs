//! `ddbx verify`.

use std::path::PathBuf;

use clap::Args;
use ddbx_recording::{Finding, LogSummary, Recording, Verification};
use serde_json::{Value, json};

use super::{NAME_WIDTH_MAX, ending, nanos, open, time};
use crate::exit::Failure;
use crate::session::{print, print_json};
use crate::table::table;
use crate::text::{cut, one_line};

/// Check whether a recording is whole and makes sense
///
/// Reads all of it: checksums, the numbers of events, gaps, whether every message was
/// sent before it arrived, and, if the run was over, that nothing has changed since.
/// Something that was lost and is said to be lost is named, but is not wrong.
#[derive(Args)]
#[command(after_long_help = "\
Columns:
  start     a process that was started again has several logs
  numbers   of the first event and of the last one
  choices   results of what the program chose by chance or by the clock
  missing   entries that the recorder lost, and knows of
  lasted    from the first event to the last one
  end       closed; open: the process was killed, or still runs; torn: the same, in the
            middle of a write; damaged

Examples:
  ddbx verify shop-1            a table, and what is remarkable
  ddbx verify shop-1 --json     the same for programs

Exit codes:
  0 sound   1 something is wrong   2 not a recording")]
pub(crate) struct VerifyArgs {
    /// The directory of the recording
    #[arg(value_name = "REC")]
    recording: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn verify(args: &VerifyArgs) -> Result<(), Failure> {
    let recording = open(&args.recording)?;
    let found = ddbx_recording::verify(&recording);
    match args.json {
        true => print_json(&as_json(&recording, &found))?,
        false => report(&recording, &found)?,
    }
    match found.findings.iter().filter(|finding| finding.is_wrong()).count() {
        0 => Ok(()),
        wrong => {
            let what = if wrong == 1 { "1 thing is" } else { &format!("{wrong} things are") };
            let place = args.recording.display();
            Err(Failure::Failed(format!("{what} wrong with {place}: restore it, or record again")))
        }
    }
}

fn report(recording: &Recording, found: &Verification) -> Result<(), Failure> {
    let columns = [
        ("process", false),
        ("start", true),
        ("events", true),
        ("numbers", false),
        ("choices", true),
        ("missing", true),
        ("lasted", true),
        ("end", false),
    ];
    if found.logs.is_empty() {
        print("nobody has recorded anything yet")?;
    } else {
        print(&table(&columns, found.logs.iter().map(row)).trim_fmt())?;
    }
    for finding in &found.findings {
        let word = if finding.is_wrong() { "wrong" } else { "note" };
        print(&format!("{word}: {}", one_line(&finding.to_string())))?;
    }
    let finished = match recording.seal() {
        None => "there is no seal: the run is not over, or its end was not recorded",
        Some(_) if found.findings.iter().any(|f| matches!(f, Finding::Breach(_))) => {
            "it is not what it was when the run was over"
        }
        Some(_) => "all is as it was when the run was over",
    };
    print(&format!("{}; {finished}", if found.is_sound() { "sound" } else { "not sound" }))
}

fn row(log: &LogSummary) -> Vec<String> {
    vec![
        cut(log.manifest.process.as_str(), NAME_WIDTH_MAX),
        log.manifest.start.to_string(),
        log.events.to_string(),
        log.range.map_or_else(String::new, |(first, last)| format!("{}–{}", first.0, last.0)),
        log.choices.to_string(),
        log.missing.to_string(),
        time(log.lasted),
        ending(log.tail).to_owned(),
    ]
}

fn as_json(recording: &Recording, found: &Verification) -> Value {
    let logs = found.logs.iter().map(|log| {
        json!({
            "process": log.manifest.process,
            "start": log.manifest.start,
            "events": log.events,
            "first": log.range.map(|(first, _)| first),
            "last": log.range.map(|(_, last)| last),
            "choices": log.choices,
            "gaps": log.gaps,
            "missing": log.missing,
            "lasted_ns": nanos(log.lasted),
            "end": ending(log.tail),
        })
    });
    json!({
        "session": recording.session().session,
        "sound": found.is_sound(),
        "sealed": recording.seal().is_some(),
        "exits": recording.seal().map(|seal| &seal.exits),
        "logs": logs.collect::<Vec<_>>(),
        "findings": found.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

fn finding(finding: &Finding) -> Value {
    let what = match finding {
        Finding::Unreadable(_) => "unreadable",
        Finding::Jump { .. } => "jump",
        Finding::NotRising { .. } => "not_rising",
        Finding::NoDeparture { .. } => "no_departure",
        Finding::OtherDeparture { .. } => "other_departure",
        Finding::BeforeDeparture { .. } => "before_departure",
        Finding::DepartureLost { .. } => "departure_lost",
        Finding::Gap(_) => "gap",
        Finding::NotClosed { .. } => "not_closed",
        Finding::Breach(_) => "seal",
    };
    let mut value = json!({
        "what": what,
        "wrong": finding.is_wrong(),
        "text": finding.to_string(),
    });
    if let Finding::Gap(lost) = finding {
        value["process"] = json!(lost.process);
        value["after"] = json!(lost.after);
        value["missing"] = json!(lost.gap.missing);
        value["why"] = json!(lost.gap.why);
    }
    value
}
