//! Defaults, file, environment and flags, in this order; the later wins.

use std::path::{Path, PathBuf};

use bough_platform::{Disk, OsDisk, RelPath, user_data_dir};
use serde_json::Value;

use super::error::ConfigError;
use super::model::{Config, LogFormat, LogLevel, WorkerConfig};
use super::placeholders::{Lookup, expand};
use super::yaml;
use crate::limits::SETTINGS_FILE_BYTES_MAX;

/// The default configuration file, below the data directory.
pub const CONFIG_FILE: &str = "config.yaml";

/// The value of `bus` that disables it.
pub(crate) const OFF: &str = "off";

/// The values of flags or environment variables; a value that is `None` changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--data-dir`, `BOUGH_DATA_DIR`.
    pub data_dir: Option<PathBuf>,
    /// `--listen`, `BOUGH_LISTEN`.
    pub listen: Option<String>,
    /// `--bus`, `BOUGH_BUS`.
    pub bus: Option<String>,
    /// `--engine` or `--url`, `BOUGH_ENGINE`.
    pub engine: Option<String>,
    /// `--config`, `BOUGH_CONFIG`.
    pub config: Option<PathBuf>,
    /// `--log`, `BOUGH_LOG`.
    pub log_format: Option<LogFormat>,
    /// `BOUGH_LOG_LEVEL`.
    pub log_level: Option<LogLevel>,
}

/// A configuration and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The data directory.
    pub data_dir: PathBuf,
    /// The file that was read; `None` when there is none.
    pub file: Option<PathBuf>,
    /// The file that would be read, to watch it.
    pub watched: PathBuf,
}

impl Overrides {
    /// The values of the environment.
    pub fn from_environment(lookup: Lookup<'_>) -> Result<Self, ConfigError> {
        let set = |name| lookup(name).filter(|value| !value.is_empty());
        Ok(Self {
            data_dir: set("BOUGH_DATA_DIR").map(PathBuf::from),
            listen: set("BOUGH_LISTEN"),
            bus: set("BOUGH_BUS"),
            engine: set("BOUGH_ENGINE"),
            config: set("BOUGH_CONFIG").map(PathBuf::from),
            log_format: set("BOUGH_LOG").map(|word| read_word("BOUGH_LOG", &word)).transpose()?,
            log_level: set("BOUGH_LOG_LEVEL")
                .map(|word| read_word("BOUGH_LOG_LEVEL", &word))
                .transpose()?,
        })
    }

    /// These values, and those of `other` where these are `None`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            data_dir: self.data_dir.or(other.data_dir),
            listen: self.listen.or(other.listen),
            bus: self.bus.or(other.bus),
            engine: self.engine.or(other.engine),
            config: self.config.or(other.config),
            log_format: self.log_format.or(other.log_format),
            log_level: self.log_level.or(other.log_level),
        }
    }
}

/// Reads and checks the configuration: defaults, then the file, then the environment, then `flags`.
pub fn load(flags: &Overrides, lookup: Lookup<'_>) -> Result<Loaded, ConfigError> {
    let given = flags.clone().or(Overrides::from_environment(lookup)?);
    let usual_dir = given.data_dir.clone().or_else(user_data_dir);
    let is_named = given.config.is_some();
    let watched = match (&given.config, &usual_dir) {
        (Some(path), _) => path.clone(),
        (None, Some(dir)) => dir.join(CONFIG_FILE),
        (None, None) => return Err(ConfigError::NoDataDir),
    };
    let text = read_file(&watched, is_named)?;
    let file = text.is_some().then(|| watched.clone());
    let mut config = parse(&text.unwrap_or_default(), lookup)?;
    let data_dir = match (&given.data_dir, &config.data_dir) {
        (Some(dir), _) => dir.clone(),
        (None, Some(text)) => expand_home(text, lookup),
        (None, None) => usual_dir.ok_or(ConfigError::NoDataDir)?,
    };
    given.apply(&mut config);
    config.check()?;
    Ok(Loaded { config, data_dir, file, watched })
}

impl Overrides {
    fn apply(self, config: &mut Config) {
        fn put<T>(slot: &mut T, given: Option<T>) {
            if let Some(value) = given {
                *slot = value;
            }
        }
        put(&mut config.listen, self.listen);
        put(&mut config.bus, self.bus);
        put(&mut config.log.format, self.log_format);
        put(&mut config.log.level, self.log_level);
        if self.engine.is_some() {
            config.engine = self.engine;
        }
        if let Some(dir) = self.data_dir {
            config.data_dir = Some(dir.to_string_lossy().into_owned());
        }
    }
}

/// Reads a configuration from the text of its file.
pub fn parse(text: &str, lookup: Lookup<'_>) -> Result<Config, ConfigError> {
    let value = yaml::read(text).map_err(|reason| ConfigError::Yaml { reason })?;
    shape(read_off(fill_adapter(expand(value, lookup)?)))
}

/// Reads the part that an engine's configuration worker holds, from its value.
pub fn parse_worker(value: Value, lookup: Lookup<'_>) -> Result<WorkerConfig, ConfigError> {
    let config: WorkerConfig = shape(fill_adapter(expand(value, lookup)?))?;
    config.check()?;
    Ok(config)
}

fn shape<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ConfigError> {
    serde_path_to_error::deserialize(value).map_err(|error| ConfigError::Shape {
        field: error.path().to_string(),
        reason: without_value(&error.into_inner().to_string()),
    })
}

/// The decoder's message without the value, which may be a secret: `invalid type: string "x", expected u64` is as clear
/// with its field and without its `"x"`.
fn without_value(reason: &str) -> String {
    let Some((met, expected)) = reason.rsplit_once(", expected ") else {
        return reason.to_owned();
    };
    match met.split_once(": ") {
        Some((what @ ("invalid type" | "invalid value"), met)) => {
            let kind = met.split(['`', '"']).next().unwrap_or_default().trim_end();
            format!("{what}: {kind}, expected {expected}")
        }
        _ => reason.to_owned(),
    }
}

/// `adapter: {name: native}` means an empty `config`.
fn fill_adapter(mut value: Value) -> Value {
    if let Some(Value::Object(adapter)) = value.get_mut("adapter")
        && adapter.get("config").is_none_or(Value::is_null)
    {
        adapter.insert("config".to_owned(), Value::Object(serde_json::Map::new()));
    }
    value
}

/// People write `bus: off`, which YAML reads as `false`.
fn read_off(mut value: Value) -> Value {
    if let Some(bus @ Value::Bool(false)) = value.get_mut("bus") {
        *bus = Value::String(OFF.to_owned());
    }
    value
}

fn read_word<T: serde::de::DeserializeOwned>(
    name: &'static str,
    word: &str,
) -> Result<T, ConfigError> {
    serde_json::from_value(Value::String(word.to_owned()))
        .map_err(|error| ConfigError::value(name, word, error.to_string()))
}

/// A path with a leading `~` replaced by the home directory.
#[must_use]
pub fn expand_home(text: &str, lookup: Lookup<'_>) -> PathBuf {
    let rest = match text.strip_prefix('~') {
        Some("") => Some(""),
        Some(rest) => rest.strip_prefix(['/', '\\']),
        None => None,
    };
    let home = || lookup("HOME").or_else(|| lookup("USERPROFILE")).filter(|home| !home.is_empty());
    match rest.zip(home()) {
        Some((rest, home)) => Path::new(&home).join(rest),
        None => PathBuf::from(text),
    }
}

/// The text of a file; `None` if it is missing and was not named explicitly.
fn read_file(path: &Path, is_named: bool) -> Result<Option<String>, ConfigError> {
    let refuse = |source| ConfigError::Read { path: path.to_owned(), source };
    match read_bytes(path) {
        Ok(bytes) => {
            let text =
                String::from_utf8(bytes).map_err(|error| refuse(std::io::Error::other(error)))?;
            Ok(Some(text))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_named => Ok(None),
        Err(error) => Err(refuse(error)),
    }
}

fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let (disk, name) = beside(path)?;
    disk.read_all(&name, SETTINGS_FILE_BYTES_MAX)
}

/// The folder of a file, as a disk, and the file's name in it.
pub(crate) fn beside(path: &Path) -> std::io::Result<(Box<dyn Disk>, RelPath)> {
    let not_a_file =
        || std::io::Error::new(std::io::ErrorKind::NotFound, "this is not a file's path");
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(not_a_file)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let disk = OsDisk::open(parent.unwrap_or_else(|| Path::new(".")))?;
    Ok((Box::new(disk), RelPath::root().join(name)?))
}
