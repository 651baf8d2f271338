//! Whatever comes from outside: no decoder panics, exhausts its stack, or takes more memory
//! than its limit. The same inputs each time; many more with
//! `cargo run --profile checked -p ddbx-tests --bin mutate`, and a fuzzer in `fuzz/`.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::AtomicU64;

use ddbx_tests::decoders::trial::{Record, Trial, shared_out};
use ddbx_tests::decoders::{DECODERS, FRAME_BYTES_MAX, corpus};

/// Over all decoders.
const INPUTS: u64 = 40_000;

fn measure(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_max
}

#[test]
fn no_decoder_is_hurt_by_what_it_reads() {
    let trial = Trial { seed: 1, threads: 2, measure };
    let run = |(decoder, inputs)| trial.run(decoder, inputs, &AtomicU64::new(0));
    let records: Vec<Record> = shared_out(DECODERS, INPUTS).map(run).collect();
    for record in &records {
        assert!(record.failures.is_empty(), "{}: {:?}", record.decoder, record.failures);
        assert_eq!(record.inputs, record.accepted + record.refused);
        // Else the seeds are not what the decoder reads, or it reads anything at all.
        assert!(record.accepted > 0, "{} takes nothing", record.decoder);
        assert!(record.refused > 0, "{} refuses nothing", record.decoder);
    }
}

#[test]
fn no_limit_is_beyond_twice_a_frame() {
    for decoder in DECODERS {
        assert!(decoder.heap_bytes_max <= 2 * FRAME_BYTES_MAX, "{}", decoder.name);
    }
}

/// A decoder that panics, or takes too much, is found out.
#[test]
fn a_decoder_that_fails_is_found_out() {
    let mut decoder = DECODERS[0];
    decoder.name = "none that has a corpus";
    decoder.seeds = || vec![vec![7; 90]];
    decoder.decode = |input| {
        assert!(input.len() < 100, "too long for me");
        drop(vec![0u8; 1 << 20]);
        true
    };
    decoder.heap_bytes_max = 1 << 21;
    let trial = Trial { seed: 1, threads: 1, measure };
    let record = trial.run(&decoder, 200, &AtomicU64::new(0));
    assert!(record.failures.iter().any(|failure| failure.what.contains("too long for me")));
    assert!(record.heap_bytes >= 1 << 20);
    decoder.heap_bytes_max = 1 << 19;
    let record = trial.run(&decoder, 200, &AtomicU64::new(0));
    assert!(record.failures.iter().any(|failure| failure.what.starts_with("took 1")));
    let first = record.failures.iter().find_map(|failure| Some((failure.number?, &failure.input)));
    let (number, input) = first.unwrap();
    assert_eq!(&trial.input(&decoder, &decoder.inputs().unwrap(), number), input);
}

#[test]
fn every_decoder_is_fuzzed() {
    let names: BTreeSet<_> = DECODERS.iter().map(|decoder| decoder.name.to_owned()).collect();
    assert_eq!(names.len(), DECODERS.len(), "two have one name");
    let fuzz = corpus().join("..");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    let targets = manifest.lines().filter_map(|line| line.strip_prefix("name = \""));
    let targets: BTreeSet<_> = targets.map(|name| name.trim_end_matches('"').to_owned()).collect();
    assert_eq!(&targets - &BTreeSet::from(["ddbx-fuzz".to_owned()]), names);
    for name in names {
        let target = fs::read_to_string(fuzz.join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(target.contains(&format!("fuzz(\"{name}\"")), "{name}");
        assert!(corpus().join(&name).is_dir(), "{name} has no corpus");
    }
}
