//! `ddbx inspect`.

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ddbx_protocol::{CallId, CallPath, ControlId, EventKind, MethodName, Pattern};
use ddbx_recording::{
    ChoiceValue, Departure, Entry, Finding, MergedEntry, Recording, Step, Tail, merged,
};
use serde_json::{Value, json};

use super::{nanos, open, remark, time};
use crate::exit::Failure;
use crate::text::{escaped, escaped_json, one_line, padded};

/// Show what is in a recording, in one order of the whole run
///
/// Nothing is shown before what it was caused by; apart from that, events of different
/// processes come by the time since their logs began. A recording can be looked at while
/// it is made.
#[derive(Args)]
#[command(after_long_help = "\
Each line: the time since the first event of that log, the process and the number of the
event in it, and what it is, with arguments or results if the run was recorded with
`--payloads`. Results of choices and gaps stand where they belong. Δ is for how long the
control was held so far. gateway/main!3.1 is the first call that is made while the third call
of gateway/main is handled, and also who handles it.

Examples:
  ddbx inspect shop-1                           all of it
  ddbx inspect shop-1 --process inventory       of inventory and its replicas
  ddbx inspect shop-1 --control traffic/customer-4
                                                of this control and those it started
  ddbx inspect shop-1 --control 'traffic/customer-4!3'
                                                of its third call and all that happens in it
  ddbx inspect shop-1 --method 'Inventory.*'    of these calls and all that happens in them
  ddbx inspect shop-1 --from 1.5s --to 2s       of this half second
  ddbx inspect shop-1 --json                    the same, one JSON object on each line

Exit codes:
  0 all was read   1 something is wrong: what is before it is shown   2 not a recording")]
pub(crate) struct InspectArgs {
    /// The directory of the recording
    #[arg(value_name = "REC")]
    recording: PathBuf,

    /// Only this process; * stands for anything, and its replicas are meant too
    #[arg(long, value_name = "NAME")]
    process: Option<String>,

    /// Only controls that begin like this, or with !N only that call and all that happens in it
    #[arg(long, value_name = "TEXT")]
    control: Option<String>,

    /// Only calls of this method and what their handlers do; * stands for anything
    #[arg(long, value_name = "PATTERN")]
    method: Option<String>,

    /// Only from this time on, counted from the start of each log
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    from: Option<Duration>,

    /// Only up to this time
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    to: Option<Duration>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn inspect(args: &InspectArgs) -> Result<(), Failure> {
    let recording = open(&args.recording)?;
    let mut filter = Filter::new(args, &recording)?;
    let names = recording.logs().iter().map(|log| log.manifest().process.as_str().len());
    let width = names.max().unwrap_or_default().min(super::NAME_WIDTH_MAX) + ":123456".len();
    let mut remarks = Vec::new();
    let mut out = BufWriter::new(anstream::stdout().lock());
    for step in merged(&recording) {
        match step {
            Step::Entry(entry) if filter.shows(&entry) => match args.json {
                true => writeln!(out, "{}", escaped_json(&as_json(&entry).to_string()))?,
                false => writeln!(out, "{}", line(&entry, width))?,
            },
            Step::Entry(_) | Step::End { tail: Tail::Closed, .. } => {}
            Step::End { log, tail } => {
                let (process, start) = (log.manifest().process.clone(), log.manifest().start);
                remarks.push(Finding::NotClosed { process, start, tail });
            }
            Step::Broken { error, .. } => remarks.push(Finding::Unreadable(error)),
        }
    }
    out.flush()?;
    drop(out);
    let breaches = recording.seal().map(|seal| seal.check(recording.directory()));
    remarks.extend(breaches.into_iter().flatten().map(Finding::Breach));
    for finding in &remarks {
        remark(&finding.to_string(), finding.is_wrong());
    }
    if remarks.iter().any(Finding::is_wrong) {
        let place = args.recording.display();
        return Err(Failure::Failed(format!("{place} is damaged: what can be read was shown")));
    }
    Ok(())
}

/// Which entries are to be shown.
struct Filter<'a> {
    args: &'a InspectArgs,
    process: Option<Pattern>,
    method: Option<Pattern>,
    /// The methods of calls that were met: answers do not say theirs.
    methods: HashMap<CallId, MethodName>,
}

impl<'a> Filter<'a> {
    fn new(args: &'a InspectArgs, recording: &Recording) -> Result<Self, Failure> {
        let process = args.process.as_deref().map(Pattern::from);
        let names: Vec<_> =
            recording.logs().iter().map(|log| log.manifest().process.as_str()).collect();
        if let Some(wanted) = process.as_ref()
            && !names.iter().any(|name| wanted.means(name))
        {
            let all = names.join(", ");
            return Err(Failure::BadInput(format!("no process {wanted} has recorded; {all} did")));
        }
        let method = args.method.as_deref().map(Pattern::from);
        Ok(Self { args, process, method, methods: HashMap::new() })
    }

    fn shows(&mut self, entry: &MergedEntry<'_>) -> bool {
        // Asked first, since it remembers.
        let is_of_method = self.is_of_method(entry);
        let process = entry.log.manifest().process.as_str();
        is_of_method
            && self.process.as_ref().is_none_or(|wanted| wanted.means(process))
            && self.args.from.is_none_or(|from| entry.since_start >= from)
            && self.args.to.is_none_or(|to| entry.since_start <= to)
            && self.args.control.as_ref().is_none_or(|wanted| is_of_control(entry, wanted))
    }

    fn is_of_method(&mut self, entry: &MergedEntry<'_>) -> bool {
        let Some(wanted) = &self.method else {
            return true;
        };
        let Some(call) = call(entry) else {
            return false;
        };
        if let Some(method) = entry.kind().and_then(EventKind::method) {
            self.methods.insert(call.clone(), method.clone());
        }
        self.methods.get(&call).is_some_and(|method| wanted.matches(method.as_str()))
    }
}

fn is_of_control(entry: &MergedEntry<'_>, wanted: &str) -> bool {
    if wanted.contains('!') {
        let call = call(entry).map(|call| call.to_string());
        let rest = call.as_deref().and_then(|call| call.strip_prefix(wanted));
        return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    }
    frame(entry).0.is_some_and(|control| control.as_str().starts_with(wanted))
}

/// Whose it is, and the call that it is about or belongs to.
fn frame<'e>(entry: &'e MergedEntry<'_>) -> (Option<&'e ControlId>, Option<&'e CallPath>) {
    match &entry.entry {
        Entry::Event(moment) => (moment.kind.control(), moment.kind.path()),
        Entry::Choice(choice) => (Some(&choice.control), choice.call.as_ref()),
        Entry::Gap(_) => (None, None),
    }
}

fn call(entry: &MergedEntry<'_>) -> Option<CallId> {
    let (control, path) = frame(entry);
    Some(CallId { control: control?.clone(), path: path?.clone() })
}

fn line(entry: &MergedEntry<'_>, width: usize) -> String {
    let manifest = entry.log.manifest();
    let again = match manifest.start {
        1 => String::new(),
        start => format!("@{start}"),
    };
    let number = entry.event_id().map_or_else(String::new, |id| format!(":{}", id.number.0));
    let name = padded(&format!("{}{again}{number}", manifest.process), width);
    let what = match &entry.entry {
        Entry::Event(moment) if moment.delay.as_nanos() > 0 => {
            format!("{}  {:?}", moment.kind, moment.delay)
        }
        Entry::Event(moment) => moment.kind.to_string(),
        Entry::Choice(choice) => {
            let who = call(entry).map_or(choice.control.to_string(), |call| call.to_string());
            format!("chooses {}: {}  {who}", choice.name, value(&choice.value))
        }
        Entry::Gap(gap) => format!("({} missing here: {})", gap.missing, gap.why),
    };
    let said = entry.payload().map_or_else(String::new, |payload| format!("  {payload}"));
    let remark = match (entry.departure, entry.kind().and_then(EventKind::sent_as)) {
        (Departure::Absent, Some(sent_as)) => format!("  (its departure {sent_as} is not there)"),
        (Departure::Later, Some(sent_as)) => format!("  (before its departure {sent_as})"),
        (Departure::Other, Some(sent_as)) => {
            format!("  (its departure {sent_as} is that of something else)")
        }
        _ => String::new(),
    };
    format!(
        "{:>12}  {name}  {}",
        time(entry.since_start),
        one_line(&format!("{what}{said}{remark}"))
    )
}

/// Text if it is some, else bytes.
fn value(value: &ChoiceValue) -> String {
    let text = str::from_utf8(value.as_bytes()).ok();
    match text.filter(|text| !text.is_empty() && !text.contains(char::is_control)) {
        Some(text) => format!("{:?}", escaped(text)),
        None => format!("0x{}", hex(value.as_bytes())),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn as_json(entry: &MergedEntry<'_>) -> Value {
    let manifest = entry.log.manifest();
    let mut object = json!({
        "process": manifest.process,
        "start": manifest.start,
        "since_start_ns": nanos(entry.since_start),
    });
    match &entry.entry {
        Entry::Event(moment) => {
            object["number"] = json!(moment.number);
            object["at"] = json!(moment.at);
            object["delay"] = json!(moment.delay);
            object["kind"] = json!(moment.kind);
            if let Some(payload) = &moment.payload {
                object["payload"] = json!({
                    "text": payload.text(),
                    "bytes": payload.bytes(),
                    "is_cut": payload.is_cut(),
                });
            }
        }
        Entry::Choice(choice) => {
            object["choice"] = json!({
                "control": choice.control,
                "call": choice.call,
                "name": choice.name,
                "value_hex": hex(choice.value.as_bytes()),
            });
        }
        Entry::Gap(gap) => object["gap"] = json!({ "missing": gap.missing, "why": gap.why }),
    }
    let departure = match entry.departure {
        Departure::Before => return object,
        Departure::Other => "other",
        Departure::Later => "later",
        Departure::Absent => "absent",
    };
    object["departure"] = json!(departure);
    object
}
