//! The bounds of what a request may hold, from the modules that check them: declared in the document, and checked in paths
//! and queries.

use bough_service::limits::{
    DOCUMENT_KEYS_PER_CALL_MAX, ENTRIES_IDS_MAX, QUERY_BYTES_MAX, RECORDING_EVENTS_PER_CALL_MAX,
    RECORDING_ID_BYTES_MAX,
};
use bough_session::LimitError;
use bough_session::limits::{
    BATCH_RECORDS_MAX, CUSTOM_TYPE_BYTES_MAX, DESCRIPTION_BYTES_MAX, DOCUMENT_KEY_BYTES_MAX,
    DOCUMENT_SCOPE_BYTES_MAX, ENTRY_ID_BYTES_MAX, LABEL_BYTES_MAX, LOOP_ID_BYTES_MAX,
    METADATA_KEYS_MAX, REASON_BYTES_MAX, SESSION_ID_BYTES_MAX, TASK_NAME_BYTES_MAX,
    TITLE_BYTES_MAX, check_at_most,
};
use serde_json::{Map, Value, json};

/// The keyword of a bound in a schema, and the bound, for the fields with a name.
///
/// Texts are bounded in bytes, and a text has no more characters than bytes.
const BOUNDS: &[(&str, &str, usize)] = &[
    ("session_id", LENGTH, SESSION_ID_BYTES_MAX),
    ("entry_id", LENGTH, ENTRY_ID_BYTES_MAX),
    ("parent_id", LENGTH, ENTRY_ID_BYTES_MAX),
    ("expected_leaf", LENGTH, ENTRY_ID_BYTES_MAX),
    ("loop_id", LENGTH, LOOP_ID_BYTES_MAX),
    ("recording_id", LENGTH, RECORDING_ID_BYTES_MAX),
    ("title", LENGTH, TITLE_BYTES_MAX),
    ("description", LENGTH, DESCRIPTION_BYTES_MAX),
    ("reason", LENGTH, REASON_BYTES_MAX),
    ("task", LENGTH, TASK_NAME_BYTES_MAX),
    ("label", LENGTH, LABEL_BYTES_MAX),
    ("custom_type", LENGTH, CUSTOM_TYPE_BYTES_MAX),
    ("query", LENGTH, QUERY_BYTES_MAX),
    ("scope", LENGTH, DOCUMENT_SCOPE_BYTES_MAX),
    ("key", LENGTH, DOCUMENT_KEY_BYTES_MAX),
    ("prefix", LENGTH, DOCUMENT_KEY_BYTES_MAX),
    ("keys", ITEMS, DOCUMENT_KEYS_PER_CALL_MAX),
    ("put", ITEMS, BATCH_RECORDS_MAX),
    ("delete", ITEMS, BATCH_RECORDS_MAX),
    ("ids", ITEMS, ENTRIES_IDS_MAX),
    ("entries", ITEMS, BATCH_RECORDS_MAX),
    ("events", ITEMS, RECORDING_EVENTS_PER_CALL_MAX),
];

const LENGTH: &str = "maxLength";
const ITEMS: &str = "maxItems";

/// Refuses a text of a path or a query that is longer than its field may be. Some functions only compare such a text and
/// would find nothing.
pub(super) fn check_length(name: &str, text: &str) -> Result<(), LimitError> {
    let bound = BOUNDS.iter().find(|(field, word, _)| *field == name && *word == LENGTH);
    bound.map_or(Ok(()), |(field, _, most)| check_at_most(field, "bytes", text.len(), *most))
}

/// Refuses a filter by more metadata than a session can have.
pub(super) fn check_members(name: &str, value: &Value) -> Result<(), LimitError> {
    let members = value.as_object().filter(|_| name == "metadata").map_or(0, Map::len);
    check_at_most("metadata", "keys", members, METADATA_KEYS_MAX)
}

/// Declares the bounds of the fields of a request.
pub(crate) fn declare(properties: &mut Value) {
    for (name, schema) in properties.as_object_mut().into_iter().flatten() {
        declare_one(name, schema);
    }
}

/// Declares the bound of one field.
pub(crate) fn declare_one(name: &str, schema: &mut Value) {
    let Some((_, word, most)) = BOUNDS.iter().find(|(field, ..)| *field == name) else { return };
    let kind = if *word == ITEMS { "array" } else { "string" };
    let is_of_kind = match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        _ => false,
    };
    if let Some(map) = schema.as_object_mut().filter(|_| is_of_kind) {
        map.insert((*word).to_owned(), json!(most));
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
