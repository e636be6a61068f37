//! Preconditions and repeatable requests: what `If-Match`, `If-None-Match` and `Idempotency-Key` mean to a function.
//!
//! | resource | its `ETag` | `If-Match` on a write means |
//! |---|---|---|
//! | a session | its life and position | (not a precondition: a status change elsewhere must not fail a write) |
//! | an entry | its revision | `expected_revision` |
//! | a session's entries | its active leaf | `expected_leaf` |

use bough_session::hex;
use http::HeaderMap;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::problem::Problem;
use crate::limits::IDEMPOTENCY_KEY_BYTES_MAX;

/// An opaque tag for a text: quoted, and with nothing in it that a header could not hold.
pub(crate) fn tag(text: &str) -> String {
    let mut tag = String::from("\"");
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            tag.push(char::from(byte));
        } else {
            tag.push('%');
            tag.push_str(&hex(&[byte]));
        }
    }
    tag.push('"');
    tag
}

/// The text of a tag that [`tag`] made.
fn untag(tag: &str) -> Option<String> {
    let inner = tag.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::new();
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let pair = [rest.next()?, rest.next()?];
        let [value] = bough_session::unhex::<1>(std::str::from_utf8(&pair).ok()?)?;
        bytes.push(value);
    }
    String::from_utf8(bytes).ok()
}

/// Whether the caller already has what this tag names.
pub(crate) fn is_known_to_caller(headers: &HeaderMap, tag: &str) -> bool {
    headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        let same = |item: &str| item == tag || item.strip_prefix("W/") == Some(tag);
        value.trim() == "*" || value.split(',').map(str::trim).any(same)
    })
}

/// Puts the precondition of `If-Match` into the request; says whether there was one.
pub(crate) fn apply_if_match(
    function_id: &str,
    headers: &HeaderMap,
    request: &mut Map<String, Value>,
) -> Result<bool, Problem> {
    let mut given = headers.get_all(IF_MATCH).iter();
    let (Some(value), more) = (given.next(), given.next()) else {
        return Ok(false);
    };
    let field = match function_id {
        "session::update-message" => "expected_revision",
        "session::append" | "session::append-many" => "expected_leaf",
        _ => return Err(no_precondition()),
    };
    let value = value.to_str().unwrap_or_default().trim();
    if value == "*" {
        return Ok(false);
    }
    let text = untag(value).filter(|_| more.is_none()).ok_or_else(not_one_tag)?;
    let wanted = if field == "expected_revision" {
        Value::from(text.parse::<u64>().map_err(|_| not_one_tag())?)
    } else {
        Value::String(text)
    };
    match request.insert(field.to_owned(), wanted.clone()) {
        Some(said) if said != wanted && !said.is_null() => {
            let detail = format!("If-Match and `{field}` say different things");
            Err(Problem::bad_request(detail, "Send one of the two."))
        }
        _ => Ok(true),
    }
}

fn not_one_tag() -> Problem {
    let detail = "If-Match must be one ETag that this server gave, or *";
    Problem::bad_request(detail, "Send the ETag of the entry, or of the session's entries.")
}

fn no_precondition() -> Problem {
    let detail = "this resource has no precondition by If-Match";
    let hint = "Entries have one (their revision), and so has appending (the active leaf).";
    Problem::bad_request(detail, hint)
}

/// Makes a request repeatable: ids that the server would choose are derived from the caller's key instead, so that the
/// same key means the same entry or session, also after a restart.
pub(crate) fn apply_idempotency_key(
    function_id: &str,
    headers: &HeaderMap,
    who: &str,
    request: &mut Map<String, Value>,
) -> Result<(), Problem> {
    let Some(key) = headers.get("idempotency-key") else {
        return Ok(());
    };
    let key = key.as_bytes();
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX {
        let detail = format!("Idempotency-Key has 1 to {IDEMPOTENCY_KEY_BYTES_MAX} bytes");
        return Err(Problem::bad_request(detail, "Use a fresh UUID for each new request."));
    }
    let session = request.get("session_id").and_then(Value::as_str).unwrap_or_default();
    let derive = |prefix: &str, count: usize| {
        let mut hash = Sha256::new();
        for part in [b"bough idempotency key", who.as_bytes(), session.as_bytes(), key] {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        hash.update(count.to_be_bytes());
        let digest = hash.finalize();
        format!("{prefix}{}", hex(digest.get(..16).unwrap_or_default()))
    };
    let (field, value) = match function_id {
        "session::create" => ("session_id", Value::String(derive("s_", 0))),
        "session::fork" => ("new_session_id", Value::String(derive("s_", 0))),
        "session::append" => ("entry_id", Value::String(derive("e_", 0))),
        "session::append-many" => {
            let count = request.get("messages").and_then(Value::as_array).map_or(0, Vec::len);
            let ids = (0..count).map(|index| Value::String(derive("e_", index)));
            ("entry_ids", Value::Array(ids.collect()))
        }
        // The others change nothing when they are repeated.
        _ => return Ok(()),
    };
    request.entry(field.to_owned()).or_insert(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut map = HeaderMap::new();
        map.insert(name, value.parse().unwrap());
        map
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn tags_hold_any_text() {
        for text in ["", "e_1", "a \"b\"", "世界", "100%", "a,b"] {
            let tag = tag(text);
            assert!(tag.parse::<http::HeaderValue>().is_ok());
            assert_eq!(untag(&tag).as_deref(), Some(text), "{tag}");
        }
        for bad in ["", "x", "\"", "\"%\"", "\"%zz\"", "\"%ff\"", "W/\"a\""] {
            assert_eq!(untag(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_caller_knows_what_it_names() {
        let check = |value: &str, expected: bool| {
            assert_eq!(is_known_to_caller(&headers("if-none-match", value), "\"1\""), expected);
        };
        check("\"1\"", true);
        check("W/\"1\"", true);
        check("\"0\", \"1\"", true);
        check("*", true);
        check("\"2\"", false);
    }

    #[test]
    fn if_match_becomes_the_functions_own_precondition() {
        let mut request = object(json!({"content": []}));
        let found =
            apply_if_match("session::update-message", &headers("if-match", "\"3\""), &mut request);
        assert!(found.unwrap());
        assert_eq!(request["expected_revision"], json!(3));
        let mut request = object(json!({}));
        apply_if_match("session::append", &headers("if-match", "\"\""), &mut request).unwrap();
        assert_eq!(request["expected_leaf"], json!(""));
    }

    #[test]
    fn a_precondition_that_cannot_be_kept_is_refused() {
        let refused = |function, value: &str, request: Value| {
            apply_if_match(function, &headers("if-match", value), &mut object(request)).unwrap_err()
        };
        refused("session::update-message", "\"x\"", json!({}));
        refused("session::update-message", "3", json!({}));
        refused("session::update-message", "\"3\"", json!({"expected_revision": 4}));
        refused("session::set-meta", "\"3\"", json!({}));
        assert!(
            !apply_if_match("session::append", &headers("if-match", "*"), &mut Map::new()).unwrap()
        );
    }

    #[test]
    fn the_same_key_means_the_same_ids() {
        let apply = |function, key: &str, who: &str, request: Value| {
            let mut request = object(request);
            apply_idempotency_key(function, &headers("idempotency-key", key), who, &mut request)
                .unwrap();
            Value::Object(request)
        };
        let entry = |key: &str, who: &str, session: &str| {
            apply("session::append", key, who, json!({"session_id": session}))["entry_id"].clone()
        };
        assert_eq!(entry("k", "a", "s"), entry("k", "a", "s"));
        for other in [entry("l", "a", "s"), entry("k", "b", "s"), entry("k", "a", "t")] {
            assert_ne!(other, entry("k", "a", "s"));
        }
        let many = apply("session::append-many", "k", "a", json!({"messages": [1, 2]}));
        assert_ne!(many["entry_ids"][0], many["entry_ids"][1]);
        let said = apply("session::append", "k", "a", json!({"entry_id": "mine"}));
        assert_eq!(said["entry_id"], json!("mine"));
        assert_eq!(apply("session::set-meta", "k", "a", json!({})), json!({}));
    }
}
