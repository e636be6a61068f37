use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Input of `session::config-status`: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigStatusRequest {}

/// How the most recent reload of the configuration ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReloadOutcome {
    /// What runs is what the configuration says.
    #[default]
    Applied,
    /// The last configuration could not be built; what ran before still runs, and differs from it.
    Rejected,
}

/// Output of `session::config-status`. `rejected_reloads > 0` means that some configuration was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadStatus {
    /// How the most recent reload ended.
    pub last_outcome: ReloadOutcome,
    /// Why the most recent rejected reload was refused.
    pub last_error: Option<String>,
    /// Rejected reloads since the start; never reset.
    pub rejected_reloads: u64,
    /// Fields whose change was read and takes effect at the next start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<String>,
}

/// Input of `session::on-config-change`. The handler reads the configuration anew, so this only says which one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnConfigChangeEvent {
    /// Configuration id that changed.
    #[serde(default)]
    pub id: Option<String>,
}

/// Output of `session::on-config-change`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnConfigChangeResponse {
    /// Always true; a failure is an error.
    pub ok: bool,
}
