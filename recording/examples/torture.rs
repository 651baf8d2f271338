//! Cuts a recording at every byte and changes every bit of it, first a log of this size
//! and then all files of a smaller one that is finished:
//! `cargo run --release -p ddbx-recording --example torture -- 64KiB`.

#![allow(clippy::unwrap_used)]

use std::thread;
use std::time::Instant;

#[path = "../tests/recording/damage.rs"]
mod damage;
#[path = "../tests/recording/memory.rs"]
mod memory;
#[path = "../tests/recording/sealed.rs"]
mod sealed;
#[path = "../tests/recording/traffic.rs"]
mod traffic;

fn main() {
    let size = std::env::args().nth(1).unwrap_or_else(|| "64KiB".to_owned());
    let kib: Option<usize> = size.strip_suffix("KiB").and_then(|number| number.parse().ok());
    let Some(kib) = kib.filter(|kib| (1..=1024).contains(kib)) else {
        eprintln!("write the size as 64KiB; {size} is not one from 1KiB to 1024KiB");
        std::process::exit(2);
    };
    let start = Instant::now();
    let log = damage::Log::new(kib * 1024);
    let len = log.bytes.len();
    // Later places take longer, so that the parts are dealt out like cards.
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for worker in 0..workers {
            let log = &log;
            scope.spawn(move || {
                for byte in (worker..len).step_by(workers) {
                    log.cut(byte..byte + 1);
                    log.change(byte * 8..byte * 8 + 8);
                }
            });
        }
    });
    log.cut(len..len + 1);
    println!(
        "{len} bytes, {} entries: cut at {} places, {} bits changed, all noticed, every prefix exact ({:.0?})",
        log.entries.len(),
        len + 1,
        len * 8,
        start.elapsed()
    );
    finished(kib * 1024 / 16, workers);
}

/// All of a finished recording is read again for every change, so it is smaller.
fn finished(log_bytes: usize, workers: usize) {
    let start = Instant::now();
    let len = thread::scope(|scope| {
        let work = |worker| {
            let sealed = sealed::Sealed::new(log_bytes);
            for byte in (worker..sealed.len()).step_by(workers) {
                sealed.cut(byte..byte + 1);
                sealed.change(byte * 8..byte * 8 + 8);
            }
            sealed.len()
        };
        let workers: Vec<_> =
            (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).max().unwrap_or_default()
    });
    println!(
        "a finished recording of {len} bytes, manifests included: cut at {len} places, {} bits changed, all noticed ({:.0?})",
        len * 8,
        start.elapsed()
    );
}
