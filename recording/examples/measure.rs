//! What recording costs: `cargo run --release -p ddbx-recording --example measure`.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use ddbx_protocol::{Delay, ProcessName, RealTime};
use ddbx_recording::{Entry, LogWriter, Moment, Options, Queue, Segment};

#[path = "../tests/recording/memory.rs"]
mod memory;
#[path = "../tests/recording/traffic.rs"]
mod traffic;

use memory::Memory;
use traffic::{Controls, shop};

const PURCHASES: u32 = 5_000;

fn main() {
    for (what, controls) in [
        ("a control per customer", Controls::Named),
        ("a control per purchase", Controls::PerPurchase),
    ] {
        let logs = shop(1, 4, PURCHASES, controls);
        println!("{what}:");
        for (every, width) in [("every 20 ms", Some(20_000_000)), ("in full blocks", None)] {
            let mut total = (0, 0);
            let mut text = String::new();
            for (process, moments) in &logs {
                let bytes = size(process, moments, width);
                total = (total.0 + bytes, total.1 + moments.len());
                text += &format!(" {process} {:.2}", bytes as f64 / moments.len() as f64);
            }
            let average = total.0 as f64 / total.1 as f64;
            println!("  bytes per event, written {every}: {average:.2} ({})", text.trim());
        }
    }
    let (process, moments) = shop(1, 4, PURCHASES, Controls::PerPurchase).swap_remove(2);
    encoding(&process, &moments);
    for threads in [1, 2, 4] {
        pushing(&moments, threads);
    }
}

/// How long a log is, if a block is written whenever its first event is `width` old.
fn size(process: &ProcessName, moments: &[Moment], width: Option<i64>) -> usize {
    let memory = Memory::default();
    let mut writer = LogWriter::new(memory.clone(), process, Options::default());
    let mut since = moments[0].at.as_nanos();
    for moment in moments {
        if width.is_some_and(|width| moment.at.as_nanos() >= since + width) {
            writer.flush(moment.at);
            since = moment.at.as_nanos();
        }
        writer.append(RealTime::default(), &Entry::Event(moment.clone()));
        if width.is_none() {
            writer.poll(RealTime::default());
        }
    }
    writer.close(RealTime::default()).unwrap();
    memory.bytes().len()
}

fn encoding(process: &ProcessName, moments: &[Moment]) {
    let entries: Vec<_> = moments.iter().cloned().map(Entry::Event).collect();
    let mut writes = Vec::new();
    let mut reads = Vec::new();
    for _ in 0..9 {
        let memory = Memory::default();
        let start = Instant::now();
        let mut writer = LogWriter::new(memory.clone(), process, Options::default());
        for entry in &entries {
            writer.append(RealTime::default(), entry);
            writer.poll(RealTime::default());
        }
        writer.close(RealTime::default()).unwrap();
        writes.push(start.elapsed());
        let bytes = memory.bytes();
        let start = Instant::now();
        assert_eq!(memory::read(&bytes, process, Segment::FIRST).entries.len(), entries.len());
        reads.push(start.elapsed());
    }
    let rate = |times: &mut Vec<Duration>| {
        times.sort();
        entries.len() as f64 / times[times.len() / 2].as_secs_f64() / 1e6
    };
    println!("encoding: {:.1} million events per second", rate(&mut writes));
    println!("decoding: {:.1} million events per second", rate(&mut reads));
}

/// The median of many rounds in which the queue fills and is drained; only the pushes
/// are timed.
fn pushing(moments: &[Moment], threads: usize) {
    const EACH: usize = 2_000;
    const ROUNDS: usize = 200;
    let queue = Queue::default();
    let process = ProcessName::new("here").unwrap();
    let mut writer = LogWriter::new(Memory::default(), &process, Options::default());
    let barrier = Barrier::new(threads + 1);
    let mut nanos: Vec<f64> = thread::scope(|scope| {
        let pushers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let push = |_| {
                        barrier.wait();
                        let start = Instant::now();
                        for moment in &moments[..EACH] {
                            let kind = moment.kind.clone();
                            black_box(queue.note(moment.at, Delay::ZERO, kind));
                        }
                        let nanos = start.elapsed().as_secs_f64() * 1e9 / EACH as f64;
                        barrier.wait();
                        nanos
                    };
                    (0..ROUNDS).map(push).collect::<Vec<_>>()
                })
            })
            .collect();
        for _ in 0..ROUNDS {
            barrier.wait();
            barrier.wait();
            writer.drain(RealTime::default(), &queue);
        }
        pushers.into_iter().flat_map(|pusher| pusher.join().unwrap()).collect()
    });
    nanos.sort_by(f64::total_cmp);
    let (median, worst) = (nanos[nanos.len() / 2], nanos[nanos.len() * 99 / 100]);
    let dropped = writer.counters().missing;
    println!(
        "push, {threads} threads: {median:.0} ns, 99 of 100 rounds below {worst:.0} ns; {dropped} dropped"
    );
}
