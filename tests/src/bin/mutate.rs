//! Gives every decoder of outside bytes many mutated inputs, and says what it took.

use std::fs;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use clap::Parser;
use ddbx_tests::decoders::trial::{Record, Trial, shared_out};
use ddbx_tests::decoders::{DECODERS, Decoder, corpus, decoder};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

/// Give every decoder of bytes from outside many inputs that are nearly right: none may
/// panic, exhaust the stack, or take more memory than its limit.
#[derive(Parser)]
#[command(name = "mutate", version, after_help = EXAMPLES)]
struct Cli {
    /// How many inputs, over all decoders
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    inputs: u64,

    /// What the inputs follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Only this decoder, with all inputs
    #[arg(long, value_name = "NAME", value_parser = named)]
    decoder: Option<&'static Decoder>,

    /// How many threads take turns; all cores if not given
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroU64>,

    /// Print one input of --decoder and do nothing else
    #[arg(long, value_name = "NUMBER", requires = "decoder")]
    show: Option<u64>,

    /// Write the seeds of all decoders as files into the corpus of the fuzzer
    #[arg(long)]
    write_corpus: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  mutate --inputs 10000000 --seed 7
  mutate --inputs 1000000 --decoder condition
  mutate --seed 7 --decoder plan --show 4711     the input that a failure names";

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("mutate: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> io::Result<ExitCode> {
    if cli.write_corpus {
        return write_corpus().map(|()| ExitCode::SUCCESS);
    }
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let threads = cli.threads.map_or(cores, NonZeroU64::get);
    let trial = Trial { seed: cli.seed, threads, measure };
    if let (Some(decoder), Some(number)) = (cli.decoder, cli.show) {
        let input = trial.input(decoder, &decoder.inputs()?, number);
        io::Write::write_all(&mut io::stdout(), &input)?;
        return Ok(ExitCode::SUCCESS);
    }
    // Panics are counted; and the parser of conditions has some that are caught.
    std::panic::set_hook(Box::new(|_| {}));
    let decoders = cli.decoder.map_or(DECODERS, std::slice::from_ref);
    let begun = Instant::now();
    let records: Vec<Record> = shared_out(decoders, cli.inputs)
        .map(|(decoder, inputs)| one(cli, trial, decoder, inputs))
        .collect();
    let inputs: u64 = records.iter().map(|record| record.inputs).sum();
    let failures: usize = records.iter().map(|record| record.failures.len()).sum();
    if cli.json {
        let seconds = begun.elapsed().as_secs();
        let all = json!({"seed": cli.seed, "inputs": inputs, "failures": failures, "seconds": seconds, "decoders": records});
        println!("{all}");
    } else {
        println!(
            "{inputs} inputs in {:.0?}, {failures} failures (seed {})",
            begun.elapsed(),
            cli.seed
        );
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One decoder. Its name is printed first: one that exhausts the stack ends this program.
fn one(cli: &Cli, trial: Trial, decoder: &Decoder, inputs: u64) -> Record {
    let style = ProgressStyle::with_template("{msg:20} {bar:40} {pos}/{len} {eta}").expect("valid");
    let bar = ProgressBar::new(inputs).with_style(style).with_message(decoder.name);
    if bar.is_hidden() {
        eprintln!("{}", decoder.name);
    }
    let done = AtomicU64::new(0);
    let record = thread::scope(|scope| {
        let running = scope.spawn(|| trial.run(decoder, inputs, &done));
        while !running.is_finished() {
            bar.set_position(done.load(Ordering::Relaxed));
            thread::sleep(Duration::from_millis(100));
        }
        running.join().expect("failures are caught")
    });
    bar.finish_and_clear();
    if !cli.json {
        let Record { inputs, accepted, refused, heap_bytes, heap_bytes_max, .. } = &record;
        println!(
            "{:20} {inputs:>9} inputs {accepted:>9} accepted {refused:>9} refused {heap_bytes:>10} of {heap_bytes_max:>9} heap bytes",
            decoder.name
        );
    }
    for failure in &record.failures {
        let shown = String::from_utf8_lossy(&failure.input[..failure.input.len().min(200)]);
        let again = match failure.number {
            Some(number) => {
                format!("mutate --seed {} --decoder {} --show {number}", cli.seed, decoder.name)
            }
            None => "one of the worst, or of the corpus".to_owned(),
        };
        eprintln!("{}: {}\n  {shown:?}\n  again: {again}", decoder.name, failure.what);
    }
    record
}

fn measure(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_max
}

fn named(name: &str) -> Result<&'static Decoder, String> {
    let names = || DECODERS.iter().map(|decoder| decoder.name).collect::<Vec<_>>().join(", ");
    decoder(name).ok_or_else(|| format!("there are {}", names()))
}

/// One file for each seed, named by its place.
fn write_corpus() -> io::Result<()> {
    for decoder in DECODERS {
        let folder: PathBuf = corpus().join(decoder.name);
        fs::create_dir_all(&folder)?;
        for (place, seed) in (decoder.seeds)().iter().enumerate() {
            fs::write(folder.join(format!("seed-{place:02}")), seed)?;
        }
    }
    Ok(())
}
