//! Nothing but tests: programs of the published Rust SDKs of iii run against Bough's bus and its worker.
