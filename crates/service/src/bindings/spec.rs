use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The request of a binding. Bindings with equal specs are distinguished only by their ordinal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BindingSpec {
    /// The type of event.
    pub trigger_type: String,
    /// The function that is called.
    pub function_id: String,
    /// The owner of the binding: the tenant, and the bus's own namespace.
    pub namespace: String,
    /// The filter as JSON text with sorted keys.
    filter: String,
}

impl BindingSpec {
    /// A spec with the filter `config`; no filter is the same as an empty one.
    #[must_use]
    pub fn new(trigger_type: &str, function_id: &str, namespace: &str, config: &Value) -> Self {
        // Objects of `serde_json` are sorted by key, so equal filters have equal text.
        let filter = if config.is_null() { "{}".to_owned() } else { config.to_string() };
        Self {
            trigger_type: trigger_type.to_owned(),
            function_id: function_id.to_owned(),
            namespace: namespace.to_owned(),
            filter,
        }
    }

    /// Names the spec in keys of documents.
    pub(super) fn digest(&self) -> String {
        digest(&[&self.trigger_type, &self.function_id, &self.namespace, &self.filter])
    }
}

/// A short name for some texts.
pub(super) fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_be_bytes());
        hash.update(part.as_bytes());
    }
    let bytes = hash.finalize();
    bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
