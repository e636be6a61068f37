//! Comparing what was expected with what came.

use serde_json::Value;

/// Whether a value has everything that is expected: objects may have more members, everything else must be equal.
pub(crate) fn has(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => expected
            .iter()
            .all(|(name, value)| actual.get(name).is_some_and(|found| has(found, value))),
        (Value::Array(actual), Value::Array(expected)) => {
            actual.len() == expected.len()
                && actual.iter().zip(expected).all(|(actual, expected)| has(actual, expected))
        }
        _ => actual == expected,
    }
}

/// Fails unless a value has everything that is expected.
pub(crate) fn assert_has(actual: &Value, expected: &Value) {
    assert!(has(actual, expected), "expected {expected}\nin {actual}");
}
