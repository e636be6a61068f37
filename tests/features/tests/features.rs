//! Each feature file, on the service alone and on the bus.

#![allow(clippy::disallowed_methods, dead_code, reason = "a test may read its own files")]

use std::collections::BTreeSet;

use bough_features::{Surface, run_feature};

macro_rules! features {
    ($surface:ident, $module:ident: $($name:ident),* $(,)?) => {
        mod $module {
            use super::*;

            pub(super) const NAMES: &[&str] = &[$(stringify!($name)),*];

            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                run_feature(stringify!($name), Surface::$surface).await;
            })*
        }
    };
}

features!(
    Service,
    on_the_service: sessions, listing, appending, updating, reading, branching, events, errors, files,
);
features!(
    Bus,
    on_the_bus: sessions, listing, appending, updating, reading, branching, events, errors, files,
    configuration, bridge, store_protocol,
);

#[test]
fn every_feature_file_is_run() {
    let mut found = BTreeSet::new();
    for file in std::fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        found.extend(name.strip_suffix(".feature").map(str::to_owned));
    }
    let run = on_the_bus::NAMES.iter().map(|name| (*name).to_owned());
    assert_eq!(found, run.collect());
}
