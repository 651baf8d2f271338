//! Whether the memory of processes grows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{io, mem};

use serde::Serialize;

use crate::stats::median;
use crate::usage;

const MIB: f64 = 1024.0 * 1024.0;

/// So much more in the last fifth than in the second one is no growth: the part of it that
/// was there, or so many MiB if that is more. (An allocator gives pages back when it likes.)
pub const GROWTH_PART_MAX: f64 = 0.05;
/// The same in MiB.
pub const GROWTH_MIB_MAX: f64 = 1.5;

/// The memory of a process at a time, in seconds and bytes.
pub type Sample = (f64, f64);

/// How the memory of a process went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    pub process: String,
    /// The medians of the fifths of the run. The first one is to get warm.
    pub mib: [f64; 5],
    /// The line through all after the first fifth that fits best.
    pub kib_per_minute: f64,
}

impl Growth {
    /// Of a run, if there are enough samples to say.
    pub fn of(process: &str, samples: &[Sample]) -> Option<Self> {
        let fifth = samples.len() / 5;
        let mib = |samples: &[Sample]| median(samples.iter().map(|(_, bytes)| bytes / MIB));
        (fifth > 0).then(|| Self {
            process: process.to_owned(),
            mib: [0, 1, 2, 3, 4].map(|nth| mib(&samples[nth * fifth..(nth + 1) * fifth])),
            kib_per_minute: slope(&samples[fifth..]) / 1024.0 * 60.0,
        })
    }

    /// By how much it has grown from the second fifth to the last, in MiB.
    pub fn grown_mib(&self) -> f64 {
        self.mib[4] - self.mib[1]
    }

    /// By how much it may grow, in MiB.
    pub fn allowed_mib(&self) -> f64 {
        (self.mib[1] * GROWTH_PART_MAX).max(GROWTH_MIB_MAX)
    }
}

/// Of the line that fits best, by least squares.
fn slope(samples: &[Sample]) -> f64 {
    let number = samples.len() as f64;
    let mean = |of: fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / number;
    let (time, bytes) = (mean(|sample| sample.0), mean(|sample| sample.1));
    let (mut products, mut squares) = (0.0, 0.0);
    for sample in samples {
        products += (sample.0 - time) * (sample.1 - bytes);
        squares += (sample.0 - time) * (sample.0 - time);
    }
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// Looks at the memory of processes now and then, from a thread of its own, until it is
/// dropped or asked what it has seen.
pub struct Watch {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Seen>>,
}

type Seen = BTreeMap<String, Vec<Sample>>;

impl Watch {
    /// Begins to look at these processes.
    pub fn start(processes: Vec<(String, u32)>, every: Duration) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = is_over.clone();
        let thread = thread::spawn(move || {
            let (began, mut seen) = (Instant::now(), Seen::new());
            while !ends.load(Ordering::Relaxed) {
                for (name, pid) in &processes {
                    // One that has ended has no memory.
                    if let Ok(bytes) = usage::own_memory(*pid) {
                        let sample = (began.elapsed().as_secs_f64(), bytes as f64);
                        seen.entry(name.clone()).or_default().push(sample);
                    }
                }
                thread::park_timeout(every);
            }
            seen
        });
        Self { is_over, thread: Some(thread) }
    }

    /// How the memory of each process went.
    pub fn growth(mut self) -> io::Result<Vec<Growth>> {
        let seen = mem::take(&mut self.thread).map(|thread| self.end(thread));
        let seen = seen.ok_or(io::ErrorKind::Other)??;
        let growth = |(name, samples): (&String, &Vec<Sample>)| Growth::of(name, samples);
        Ok(seen.iter().filter_map(growth).collect())
    }

    fn end(&self, thread: JoinHandle<Seen>) -> io::Result<Seen> {
        self.is_over.store(true, Ordering::Relaxed);
        thread.thread().unpark();
        thread.join().map_err(|_| io::Error::other("whoever looks at memory has panicked"))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = self.end(thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(bytes: impl Fn(f64) -> f64) -> Growth {
        let samples: Vec<Sample> = (0..600).map(f64::from).map(|at| (at, bytes(at))).collect();
        Growth::of("central", &samples).unwrap()
    }

    #[test]
    fn what_is_flat_after_it_is_warm_does_not_grow() {
        let flat = growth(|at| MIB * (20.0 + if at < 100.0 { at / 10.0 } else { 10.0 }));
        assert!(flat.grown_mib().abs() < 0.001 && flat.kib_per_minute.abs() < 10.0, "{flat:?}");
        assert!(flat.grown_mib() < flat.allowed_mib());
    }

    #[test]
    fn what_grows_all_the_time_is_found_out() {
        let leaks = growth(|at| MIB * (20.0 + at / 100.0));
        assert!(leaks.grown_mib() > leaks.allowed_mib(), "{leaks:?}");
        assert!((leaks.kib_per_minute - 614.4).abs() < 1.0, "{leaks:?}");
    }

    #[test]
    fn few_samples_say_nothing() {
        assert_eq!(Growth::of("central", &[(0.0, 1.0); 4]), None);
    }
}
