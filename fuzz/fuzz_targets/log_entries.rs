#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| ddbx_tests::decoders::fuzz("log_entries", input));
