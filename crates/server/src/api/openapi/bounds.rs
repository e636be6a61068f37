//! The bounds of what a request may hold, from the modules that check them.

use bough_service::limits::{
    DOCUMENT_KEYS_PER_CALL_MAX, ENTRIES_IDS_MAX, QUERY_BYTES_MAX, RECORDING_EVENTS_PER_CALL_MAX,
    RECORDING_ID_BYTES_MAX,
};
use bough_session::limits::{
    BATCH_RECORDS_MAX, CUSTOM_TYPE_BYTES_MAX, DESCRIPTION_BYTES_MAX, DOCUMENT_KEY_BYTES_MAX,
    DOCUMENT_SCOPE_BYTES_MAX, ENTRY_ID_BYTES_MAX, LABEL_BYTES_MAX, LOOP_ID_BYTES_MAX,
    REASON_BYTES_MAX, SESSION_ID_BYTES_MAX, TASK_NAME_BYTES_MAX, TITLE_BYTES_MAX,
};
use serde_json::{Value, json};

/// The keyword of a bound in a schema, and the bound, for the fields with a name.
///
/// Texts are bounded in bytes, and a text has no more characters than bytes.
fn bound(name: &str) -> Option<(&'static str, usize)> {
    let most = match name {
        "session_id" => SESSION_ID_BYTES_MAX,
        "entry_id" | "parent_id" | "expected_leaf" => ENTRY_ID_BYTES_MAX,
        "loop_id" => LOOP_ID_BYTES_MAX,
        "recording_id" => RECORDING_ID_BYTES_MAX,
        "title" => TITLE_BYTES_MAX,
        "description" => DESCRIPTION_BYTES_MAX,
        "reason" => REASON_BYTES_MAX,
        "task" => TASK_NAME_BYTES_MAX,
        "label" => LABEL_BYTES_MAX,
        "custom_type" => CUSTOM_TYPE_BYTES_MAX,
        "query" => QUERY_BYTES_MAX,
        "scope" => DOCUMENT_SCOPE_BYTES_MAX,
        "key" | "prefix" => DOCUMENT_KEY_BYTES_MAX,
        "keys" => return Some(("maxItems", DOCUMENT_KEYS_PER_CALL_MAX)),
        "put" | "delete" => return Some(("maxItems", BATCH_RECORDS_MAX)),
        "ids" => return Some(("maxItems", ENTRIES_IDS_MAX)),
        "entries" => return Some(("maxItems", BATCH_RECORDS_MAX)),
        "events" => return Some(("maxItems", RECORDING_EVENTS_PER_CALL_MAX)),
        _ => return None,
    };
    Some(("maxLength", most))
}

/// Declares the bounds of the fields of a request.
pub(super) fn declare(properties: &mut Value) {
    for (name, schema) in properties.as_object_mut().into_iter().flatten() {
        declare_one(name, schema);
    }
}

/// Declares the bound of one field.
pub(super) fn declare_one(name: &str, schema: &mut Value) {
    let Some((word, most)) = bound(name) else { return };
    let kind = if word == "maxItems" { "array" } else { "string" };
    let is_of_kind = match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        _ => false,
    };
    if let Some(map) = schema.as_object_mut().filter(|_| is_of_kind) {
        map.insert(word.to_owned(), json!(most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_declared_where_the_type_fits() {
        let mut properties = json!({
            "title": {"type": ["string", "null"]},
            "entries": {"type": "array"},
            "label": {"type": "object"},
            "other": {"type": "string"},
        });
        declare(&mut properties);
        let expected = json!({
            "title": {"type": ["string", "null"], "maxLength": TITLE_BYTES_MAX},
            "entries": {"type": "array", "maxItems": BATCH_RECORDS_MAX},
            "label": {"type": "object"},
            "other": {"type": "string"},
        });
        assert_eq!(properties, expected);
    }
}
