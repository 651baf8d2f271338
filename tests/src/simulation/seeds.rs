//! Many seeds, on all cores, with the same result on any number of them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::checkers::{Pair, Violation, check};
use super::generate::{Options, generate};

/// Seeds are handed out in blocks; a search ends with the block of its find.
const BLOCK: u64 = 256;

/// What many schedules came to.
#[derive(Debug, Default)]
pub struct Tally {
    /// How many were run.
    pub schedules: u64,
    /// Gated events of the program, with the debugger.
    pub events: u64,
    /// Holds of the user's.
    pub holds: u64,
    /// Debugger messages by kind.
    pub messages: BTreeMap<&'static str, u64>,
    /// Promises that were not kept, by seed.
    pub violations: Vec<(u64, Violation)>,
}

/// Runs all seeds, or, with `until_caught`, up to the first violation. Tells
/// `progress` how many are done.
pub fn run(
    seeds: Range<u64>,
    options: &Options,
    until_caught: bool,
    progress: impl Fn(u64),
) -> Tally {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let mut tally = Tally::default();
    let mut start = seeds.start;
    while start < seeds.end {
        let end = seeds.end.min(start + BLOCK);
        let next = AtomicU64::new(start);
        let parts: Vec<Tally> = std::thread::scope(|scope| {
            let work = || part(&next, end, options);
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().map(|worker| worker.join().expect("a worker")).collect()
        });
        for part in parts {
            tally.add(part);
        }
        progress(end - seeds.start);
        if until_caught && !tally.violations.is_empty() {
            break;
        }
        start = end;
    }
    tally.violations.sort_by_key(|(seed, violation)| (*seed, violation.checker));
    tally
}

fn part(next: &AtomicU64, end: u64, options: &Options) -> Tally {
    let mut tally = Tally::default();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return tally;
        }
        let (program, scenario) = generate(seed, options);
        let pair = Pair::run(&program, &scenario);
        let violations = check(&pair).into_iter().map(|violation| (seed, violation)).collect();
        tally.add(Tally {
            schedules: 1,
            events: pair.debugged.events.len() as u64,
            holds: pair.debugged.holds,
            messages: pair.debugged.messages.clone(),
            violations,
        });
    }
}

impl Tally {
    fn add(&mut self, part: Self) {
        self.schedules += part.schedules;
        self.events += part.events;
        self.holds += part.holds;
        for (kind, count) in part.messages {
            *self.messages.entry(kind).or_default() += count;
        }
        self.violations.extend(part.violations);
    }
}
