//! Runs the whole debugger through many seeded schedules and checks what must
//! hold.

use std::ops::{Range, RangeInclusive};
use std::process::ExitCode;

use clap::Parser;
use ddbx_protocol::{Mode, Safeguard};
use ddbx_tests::simulation::checkers::{Pair, Violation};
use ddbx_tests::simulation::generate::{Options, generate};
use ddbx_tests::simulation::seeds::{Tally, run};
use ddbx_tests::simulation::{describe, picture, scale, shrink};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

/// Run the whole debugger, satellites, central and network, through seeded
/// schedules, and check that it changes neither order nor timeouts.
#[derive(Parser)]
#[command(name = "simulate", version, after_help = EXAMPLES)]
struct Cli {
    /// Which seeds, the last one not included
    #[arg(long, value_name = "A..B", default_value = "0..1000", value_parser = seeds)]
    seeds: Range<u64>,

    /// Let things go wrong: crashes, cut and half-open connections, stalls
    #[arg(long)]
    faults: bool,

    /// How many processes a program has; random if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    processes: Option<u32>,

    /// How the rule is applied: by satellites, or by asking central at every event
    #[arg(long, value_name = "permit|ask", value_parser = mode, default_value = "permit")]
    mode: Mode,

    /// How long debugger messages take, such as 0, 20us or 0..50us; if not given,
    /// nothing in about half of the schedules, up to 50us in the others
    #[arg(long, value_name = "TIME|A..B", value_parser = latency)]
    latency: Option<RangeInclusive<u64>>,

    /// Leave a clause of the rule out, and stop at the first seed that shows it
    #[arg(long, value_name = "NAME", value_parser = sabotage)]
    sabotage: Option<Safeguard>,

    /// List what can be left out
    #[arg(long)]
    list_sabotages: bool,

    /// Count the messages of one hold with more and more processes that it does
    /// not concern
    #[arg(long)]
    scale: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  simulate --seeds 0..10000                  exit code 1 if any promise is broken
  simulate --seeds 0..10000 --faults
  simulate --seeds 0..5000 --sabotage timers-not-gated
  simulate --seeds 4711..4712                one schedule again
  simulate --scale                           who hears of a hold";

fn main() -> ExitCode {
    let cli = Cli::parse();
    if cli.list_sabotages {
        list_sabotages(cli.json);
        return ExitCode::SUCCESS;
    }
    if cli.scale {
        return print_scale(cli.json);
    }
    let options = Options {
        processes: cli.processes.map(|processes| processes as usize),
        faults: cli.faults,
        mode: Some(cli.mode),
        latency: cli.latency.clone(),
        sabotage: cli.sabotage,
    };
    let bar = ProgressBar::new(cli.seeds.end - cli.seeds.start)
        .with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} {eta}").expect("valid"));
    let tally =
        run(cli.seeds.clone(), &options, cli.sabotage.is_some(), |done| bar.set_position(done));
    bar.finish_and_clear();
    let text = if cli.json {
        format!("{}\n", as_json(&tally, cli.sabotage))
    } else {
        tally_text(&tally, &options)
    };
    print(&text);
    if let Some((seed, first)) = tally.violations.first()
        && cli.sabotage.is_none()
    {
        // Beside JSON, for whoever looks at the terminal.
        let case = case_text(*seed, first, &options);
        if cli.json { eprint!("{case}") } else { print(&case) }
    }
    if tally.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn as_json(tally: &Tally, sabotage: Option<Safeguard>) -> Value {
    let caught = tally.violations.first().map(|(seed, _)| *seed);
    let violations = tally
        .violations
        .iter()
        .map(|(seed, found)| json!({"seed": seed, "checker": found.checker, "what": found.what}));
    json!({
        "schedules": tally.schedules,
        "events": tally.events,
        "holds": tally.holds,
        "messages": tally.messages,
        "violations": violations.collect::<Vec<_>>(),
        "sabotage": sabotage.map(|safeguard| safeguard.to_string()),
        "caught_at_seed": caught.filter(|_| sabotage.is_some()),
    })
}

fn tally_text(tally: &Tally, options: &Options) -> String {
    let Tally { schedules, events, holds, messages, violations } = tally;
    let mut text =
        format!("{schedules} schedules, {events} events, {holds} holds; messages {messages:?}\n");
    match (violations.first(), options.sabotage) {
        (None, None) => text += "no violations\n",
        (None, Some(sabotage)) => text += &format!("{sabotage}: not caught\n"),
        (Some((seed, first)), Some(sabotage)) => {
            let Violation { checker, what } = first;
            text += &format!("{sabotage}: caught at seed {seed} by \"{checker}\": {what}\n");
        }
        (Some(_), None) => {
            for (seed, Violation { checker, what }) in violations {
                text += &format!("seed {seed}: {checker}: {what}\n");
            }
        }
    }
    text
}

/// The first violation, as small as it gets, and how to see it again.
fn case_text(seed: u64, found: &Violation, options: &Options) -> String {
    let (program, scenario) = generate(seed, options);
    let (program, scenario) = shrink::shrink(program, scenario, found.checker);
    let pair = Pair::run(&program, &scenario);
    let with = picture::picture(&program, &pair.debugged, &pair.undisturbed);
    let without = picture::picture(&program, &pair.undisturbed, &pair.debugged);
    format!(
        "\nseed {seed} made smaller:\n{}\n{}\nwith the debugger:\n{with}\nwithout:\n{without}\nagain: {}\n",
        describe::program(&program),
        describe::scenario(&scenario),
        options.command(seed),
    )
}

/// Prints, and ends quietly when nobody reads any more.
fn print(text: &str) {
    use std::io::Write as _;
    if std::io::stdout().lock().write_all(text.as_bytes()).is_err() {
        std::process::exit(0);
    }
}

fn list_sabotages(json: bool) {
    let names: Vec<String> = Safeguard::ALL.iter().map(ToString::to_string).collect();
    if json {
        println!("{}", json!(names));
    } else {
        println!("{}", names.join("\n"));
    }
}

/// One hold that concerns five processes, among 5, 100 and 1,000.
fn print_scale(json: bool) -> ExitCode {
    let concerned = 5;
    let rows: Vec<scale::Scale> =
        [concerned, 100, 1_000].into_iter().map(|n| scale::measure(n, concerned)).collect();
    for row in &rows {
        let total: u64 = row.messages.values().sum();
        let steady: u64 = row.steady.values().sum();
        if json {
            let line = json!({
                "processes": row.processes,
                "concerned": concerned,
                "heard": row.heard,
                "messages": row.messages,
                "rpcs": row.rpcs,
                "messages_without_hold": steady,
            });
            println!("{line}");
        } else {
            println!(
                "{:>5} processes, {concerned} concerned: {} heard something, {total} messages {:?}; \
                 {steady} messages for {} RPCs without a hold",
                row.processes, row.heard, row.messages, row.rpcs
            );
        }
    }
    let same = rows.iter().all(|row| row.messages == rows[0].messages);
    let only_concerned = rows.iter().all(|row| row.heard <= concerned);
    let silent = rows.iter().all(|row| row.steady.is_empty());
    if same && only_concerned && silent { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("give a range such as 0..1000")?;
    let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is not a seed"));
    let (from, to) = (number(from)?, number(to)?);
    if from < to { Ok(from..to) } else { Err("the range is empty".to_owned()) }
}

fn mode(text: &str) -> Result<Mode, String> {
    match text {
        "permit" => Ok(Mode::Permit),
        "ask" => Ok(Mode::Ask),
        _ => Err("give permit or ask".to_owned()),
    }
}

fn latency(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let (from, to) = (nanos(from)?, nanos(to)?);
    if from <= to { Ok(from..=to) } else { Err("the range is empty".to_owned()) }
}

fn nanos(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" if digits == "0" => 1,
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        _ => return Err(format!("{text:?} is not a time such as 50us")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{text:?} is not a time such as 50us"))?;
    number.checked_mul(unit).filter(|n| *n <= 1_000_000_000).ok_or("at most 1s".to_owned())
}

fn sabotage(text: &str) -> Result<Safeguard, String> {
    let found = Safeguard::ALL.into_iter().find(|safeguard| safeguard.to_string() == text);
    found.ok_or_else(|| "no such sabotage; --list-sabotages lists them".to_owned())
}
