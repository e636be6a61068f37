//! The manifest of the worker, for developers who build on this program.

use bough_service::{WORKER_DESCRIPTION, WORKER_NAME, WORKER_VERSION};
use serde_json::{Value, json};

use crate::config::WorkerConfig;

/// The systems that session-manager is published for.
const TARGETS: [&str; 9] = [
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "i686-pc-windows-msvc",
    "x86_64-pc-windows-msvc",
    "aarch64-pc-windows-msvc",
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "armv7-unknown-linux-gnueabihf",
];

/// The worker's manifest, as `bough --manifest` prints it.
#[must_use]
pub fn worker_manifest() -> Value {
    json!({
        "name": WORKER_NAME,
        "version": WORKER_VERSION,
        "type": "binary",
        "description": WORKER_DESCRIPTION,
        "supported_targets": TARGETS,
        "dependencies": { "configuration": "^0.19.0" },
        "default_config": WorkerConfig::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_is_that_of_session_manager() {
        let manifest = worker_manifest();
        assert_eq!(
            (&manifest["name"], &manifest["version"]),
            (&json!("session-manager"), &json!("1.0.0"))
        );
        // What a server stores that finds no settings; session-manager's own settings are kept.
        assert_eq!(manifest["default_config"]["adapter"]["name"], "native");
        assert_eq!(manifest["default_config"]["max_list_limit"], 500);
        assert_eq!(manifest["supported_targets"].as_array().unwrap().len(), 9);
    }
}
