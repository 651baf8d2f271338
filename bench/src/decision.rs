//! The way of nearly every event: permit present, nothing held.

use std::hint::black_box;
use std::time::Instant;

use ddbx_protocol::Gate;
use ddbx_protocol::{AllOn, Delay, MethodName, Mode, ProcessIndex, RealTime, RpcEvent, Stack};
use ddbx_satellite::logic::strand::{Strand, StrandId};
use ddbx_satellite::logic::{Satellite, Verdict};

use crate::stats::median;
use crate::verdict::{at_most, report};

const EVENTS: u64 = 1_000_000;
const ROUNDS: usize = 15;
const NANOS_MAX: f64 = 100.0;

/// Prints time and allocations per event; true if the goals are met.
pub fn run(json: bool) -> bool {
    let mut satellite = Satellite::new(ProcessIndex(0), Mode::Permit, AllOn);
    satellite.handle_attached(RealTime::default());
    let method = MethodName::new("Inventory.reserve").expect("a valid name");
    let gate = Gate::Rpc(RpcEvent::Arrive, method);
    let stack = Stack::home(ProcessIndex(1)).call(ProcessIndex(0));
    let strand = Strand::new(StrandId(1), stack, Delay::ZERO);
    let mut samples = Vec::with_capacity(ROUNDS);
    let mut allocations = 0;
    for _ in 0..ROUNDS {
        let counted = allocation_counter::measure(|| {
            let start = Instant::now();
            for nanos in 0..EVENTS {
                let now = RealTime::from_nanos(nanos as i64);
                let verdict = satellite.handle_event(now, black_box(&strand), black_box(&gate));
                assert_eq!(black_box(verdict), Verdict::Go(Delay::ZERO));
            }
            samples.push(start.elapsed().as_secs_f64() * 1e9 / EVENTS as f64);
        });
        allocations += counted.count_total;
    }
    let verdicts = [
        at_most("nanoseconds per event, median", median(samples), NANOS_MAX),
        at_most("allocations in all of them", allocations as f64, 0.0),
    ];
    report(&verdicts, json)
}
