//! The configuration as a person reads it.

use serde_json::Value;

use super::check::without_password;
use super::load::Loaded;
use super::yaml;

/// A configuration file with every field, its default and what it means.
pub const DOCUMENTED_FILE: &str = include_str!("config.yaml");

/// The effective configuration of a server, as YAML that can be used as its file. Secrets are left
/// out.
#[must_use]
pub fn show(loaded: &Loaded) -> String {
    let mut value = serde_json::to_value(&loaded.config).unwrap_or_default();
    hide_secrets(&mut value);
    if let Some(map) = value.as_object_mut() {
        let data_dir = loaded.data_dir.to_string_lossy().into_owned();
        map.insert("data_dir".to_owned(), Value::String(data_dir));
    }
    let source = match &loaded.file {
        Some(path) => format!("# from {}\n", path.display()),
        None => format!("# defaults; {} does not exist\n", loaded.watched.display()),
    };
    source + &yaml::write(&value)
}

/// Removes the secrets from a configuration.
pub fn hide_secrets(config: &mut Value) {
    if let Some(token) = config.pointer_mut("/adapter/config/token") {
        *token = Value::String("(hidden)".to_owned());
    }
    for pointer in ["/adapter/config/url", "/engine"] {
        if let Some(Value::String(url)) = config.pointer_mut(pointer) {
            *url = without_password(url);
        }
    }
}
