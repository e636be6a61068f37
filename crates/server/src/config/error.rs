//! Why a configuration is not used.

use std::io;
use std::path::PathBuf;

use super::placeholders::PlaceholderError;

/// Why a configuration is not used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is not readable.
    #[error("cannot read the configuration {}: {source}; check the path and its permissions", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not YAML.
    #[error("the configuration is not valid YAML: {reason}")]
    Yaml {
        /// The error of the parser.
        reason: String,
    },
    /// A placeholder cannot be replaced.
    #[error("the configuration cannot be expanded: {0}")]
    Placeholder(#[from] PlaceholderError),
    /// A field is unknown, missing or of the wrong type.
    #[error("the configuration is wrong at `{field}`: {reason}")]
    Shape {
        /// Where.
        field: String,
        /// What is wrong.
        reason: String,
    },
    /// A field has a value that makes no sense.
    #[error("`{field}` is {value:?}: {reason}")]
    Value {
        /// Which.
        field: &'static str,
        /// What it is.
        value: String,
        /// What is wrong with it, and what to write instead.
        reason: String,
    },
    /// No data directory was given, and there is no home directory.
    #[error("there is no home directory to keep data in; give --data-dir or set BOUGH_DATA_DIR")]
    NoDataDir,
}

impl ConfigError {
    pub(crate) fn value(
        field: &'static str,
        value: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self::Value { field, value: value.into(), reason: reason.into() }
    }
}
