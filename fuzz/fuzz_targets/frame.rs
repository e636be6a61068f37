#![no_main]

#[path = "../../crates/log/tests/it/decoders.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|data: &[u8]| decoders::frame(data));
