//! Decoders on trial: many mutated inputs, each measured.
//!
//! Input number `n` of a decoder follows from the seed, the name of the decoder and `n`
//! alone, so each can be made again.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use fastrand::Rng;
use serde::Serialize;

use super::Decoder;
use super::mutation::mutated;

/// Runs something and says how many bytes of memory this thread held at most meanwhile,
/// beyond what it held before.
///
/// It is given, because whoever counts replaces the allocator of the whole program.
pub type Measure = fn(&mut dyn FnMut()) -> u64;

/// How one decoder fared.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Record {
    /// Which.
    pub decoder: &'static str,
    /// How many inputs it was given.
    pub inputs: u64,
    /// How many it took.
    pub accepted: u64,
    /// How many it refused.
    pub refused: u64,
    /// The most memory that one input took.
    pub heap_bytes: u64,
    /// How much it may take.
    pub heap_bytes_max: u64,
    /// What it must not do, and did.
    pub failures: Vec<Failure>,
}

/// Something that a decoder must not do.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// Which input; none for one of the worst.
    pub number: Option<u64>,
    /// The input.
    #[serde(skip)]
    pub input: Vec<u8>,
    /// What it did.
    pub what: String,
}

/// How many failures of a decoder are kept.
const FAILURES_MAX: usize = 10;

/// A trial.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// What all inputs follow from.
    pub seed: u64,
    /// How many threads take turns.
    pub threads: u64,
    /// How memory is measured.
    pub measure: Measure,
}

impl Trial {
    /// Gives a decoder its worst inputs, and so many mutated ones. `done` counts them.
    ///
    /// # Panics
    ///
    /// If the corpus cannot be read, or no thread can be started.
    pub fn run(&self, decoder: &Decoder, inputs: u64, done: &AtomicU64) -> Record {
        let seeds = decoder.inputs().expect("the corpus can be read");
        let worst = self.on_threads(decoder, 1, |_, record| {
            for input in (decoder.worst)().into_iter().chain(decoder.inputs().unwrap_or_default()) {
                self.try_one(decoder, None, input, record);
            }
        });
        let mutated = self.on_threads(decoder, self.threads, |thread, record| {
            let mut number = thread;
            while number < inputs {
                let input = self.input(decoder, &seeds, number);
                self.try_one(decoder, Some(number), input, record);
                done.fetch_add(1, Ordering::Relaxed);
                number += self.threads;
            }
        });
        sum(decoder, worst.into_iter().chain(mutated))
    }

    /// Input `number` of a decoder.
    pub fn input(&self, decoder: &Decoder, seeds: &[Vec<u8>], number: u64) -> Vec<u8> {
        let mut hasher = DefaultHasher::new();
        (self.seed, decoder.name, number).hash(&mut hasher);
        mutated(&mut Rng::with_seed(hasher.finish()), seeds)
    }

    /// On threads with the stack that the decoder has where it is used.
    fn on_threads(
        &self,
        decoder: &Decoder,
        threads: u64,
        work: impl Fn(u64, &mut Record) + Sync,
    ) -> Vec<Record> {
        let run = |thread| {
            let mut record = Record::default();
            work(thread, &mut record);
            record
        };
        thread::scope(|scope| {
            let started = |thread| {
                let builder = thread::Builder::new().stack_size(decoder.stack_bytes);
                builder.spawn_scoped(scope, move || run(thread)).expect("a thread")
            };
            let running: Vec<_> = (0..threads).map(started).collect();
            running.into_iter().map(|thread| thread.join().expect("failures are caught")).collect()
        })
    }

    fn try_one(&self, decoder: &Decoder, number: Option<u64>, input: Vec<u8>, record: &mut Record) {
        let mut outcome = Ok(false);
        let heap_bytes = (self.measure)(&mut || {
            outcome = catch_unwind(AssertUnwindSafe(|| (decoder.decode)(&input)));
        });
        record.inputs += 1;
        record.heap_bytes = record.heap_bytes.max(heap_bytes);
        let what = match outcome {
            Err(panic) => format!("panicked: {}", message(&*panic)),
            Ok(_) if heap_bytes > decoder.heap_bytes_max as u64 => {
                format!("took {heap_bytes} bytes, and may take {}", decoder.heap_bytes_max)
            }
            Ok(accepted) => {
                record.accepted += u64::from(accepted);
                record.refused += u64::from(!accepted);
                return;
            }
        };
        if record.failures.len() < FAILURES_MAX {
            record.failures.push(Failure { number, input, what });
        }
    }
}

fn sum(decoder: &Decoder, records: impl Iterator<Item = Record>) -> Record {
    let mut all = Record {
        decoder: decoder.name,
        heap_bytes_max: decoder.heap_bytes_max as u64,
        ..Record::default()
    };
    for record in records {
        all.inputs += record.inputs;
        all.accepted += record.accepted;
        all.refused += record.refused;
        all.heap_bytes = all.heap_bytes.max(record.heap_bytes);
        all.failures.extend(record.failures);
    }
    all.failures.truncate(FAILURES_MAX);
    all
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "without a word",
    }
}

/// How many of `inputs` each decoder gets, by its share; at least one.
pub fn shared_out(decoders: &[Decoder], inputs: u64) -> impl Iterator<Item = (&Decoder, u64)> {
    let shares: u64 = decoders.iter().map(|decoder| decoder.share).sum();
    decoders.iter().map(move |decoder| {
        let part = u128::from(inputs) * u128::from(decoder.share) / u128::from(shares);
        (decoder, (part as u64).max(1))
    })
}
