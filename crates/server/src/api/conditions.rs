//! Preconditions and repeatable requests: what `If-Match`, `If-None-Match` and `Idempotency-Key` mean to a function.
//!
//! | resource | its `ETag` | `If-Match` on a write means |
//! |---|---|---|
//! | a session | its life and position | (not a precondition: a status change elsewhere must not fail a write) |
//! | an entry | its session's life and its revision | `expected_revision` in that life |
//! | a session's entries | its active leaf | `expected_leaf` |

use bough_session::{Incarnation, hex};
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

/// The tag of an entry: an id that is used again in a later life of its session is another entry.
pub(crate) fn entry_tag(life: Incarnation, revision: u64) -> String {
    tag(&format!("{life}.{revision}"))
}

/// What `If-Match` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Precondition {
    /// Whether there is something to be met.
    pub(crate) is_there: bool,
    /// The life of the session that is meant.
    pub(crate) life: Option<Incarnation>,
}

/// Puts the precondition of `If-Match` into the request; says what it was.
pub(crate) fn apply_if_match(
    function_id: &str,
    headers: &HeaderMap,
    request: &mut Map<String, Value>,
) -> Result<Precondition, Problem> {
    let mut given = headers.get_all(IF_MATCH).iter();
    let (Some(value), more) = (given.next(), given.next()) else {
        return Ok(Precondition::default());
    };
    let field = match function_id {
        "session::update-message" | "session::append-delta" => "expected_revision",
        "session::append" | "session::append-many" => "expected_leaf",
        _ => return Err(no_precondition()),
    };
    let value = value.to_str().unwrap_or_default().trim();
    if value == "*" {
        return Ok(Precondition::default());
    }
    let text = untag(value).filter(|_| more.is_none()).ok_or_else(not_one_tag)?;
    let (wanted, life) = if field == "expected_revision" {
        let (life, revision) = text.split_once('.').ok_or_else(not_one_tag)?;
        let revision = revision.parse::<u64>().map_err(|_| not_one_tag())?;
        (Value::from(revision), Some(life.parse().map_err(|_| not_one_tag())?))
    } else {
        (Value::String(text), None)
    };
    match request.insert(field.to_owned(), wanted.clone()) {
        Some(said) if said != wanted && !said.is_null() => {
            let detail = format!("If-Match and `{field}` say different things");
            Err(Problem::bad_request(detail, "Send one of the two."))
        }
        _ => Ok(Precondition { is_there: true, life }),
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

/// What makes a request repeatable: ids that the service would draw are made from it instead, so that the same key means the
/// same entries or session, also after a restart. `None` when the caller gave no `Idempotency-Key`.
pub(crate) fn idempotency_key(
    function_id: &str,
    headers: &HeaderMap,
    who: &str,
    request: &Map<String, Value>,
) -> Result<Option<[u8; 32]>, Problem> {
    let Some(key) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let key = key.as_bytes();
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX {
        let detail = format!("Idempotency-Key has 1 to {IDEMPOTENCY_KEY_BYTES_MAX} bytes");
        return Err(Problem::bad_request(detail, "Use a fresh UUID for each new request."));
    }
    let is_conditional = request.get("expected_revision").is_some_and(|said| !said.is_null());
    if function_id == "session::append-delta" && !is_conditional {
        // A step makes nothing that would be found again; its revision is what tells one from the next.
        let detail = "a delta is not made repeatable by Idempotency-Key alone";
        let hint = "Send `expected_revision` or If-Match: a delta that was added already is then not added again.";
        return Err(Problem::bad_request(detail, hint));
    }
    let session = request.get("session_id").and_then(Value::as_str).unwrap_or_default();
    let parts = ["bough idempotency key", who, function_id, session].map(str::as_bytes);
    let mut hash = Sha256::new();
    for part in parts.into_iter().chain([key]) {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    Ok(Some(hash.finalize().into()))
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
        let life = Incarnation::new([7; 16]);
        let given = headers("if-match", &entry_tag(life, 3));
        for function in ["session::update-message", "session::append-delta"] {
            let mut request = object(json!({"content": []}));
            let found = apply_if_match(function, &given, &mut request).unwrap();
            assert_eq!(found, Precondition { is_there: true, life: Some(life) });
            assert_eq!(request["expected_revision"], json!(3));
        }
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
        refused("session::update-message", "\"3\"", json!({}));
        let tag = entry_tag(Incarnation::new([7; 16]), 3);
        refused("session::update-message", &tag, json!({"expected_revision": 4}));
        refused("session::set-meta", "\"3\"", json!({}));
        let any = apply_if_match("session::append", &headers("if-match", "*"), &mut Map::new());
        assert_eq!(any.unwrap(), Precondition::default());
    }

    #[test]
    fn a_key_is_of_one_caller_one_function_and_one_session() {
        let key = |function, key: &str, who: &str, request: Value| {
            let headers = headers("idempotency-key", key);
            idempotency_key(function, &headers, who, &object(request)).unwrap().unwrap()
        };
        let session = |id: &str| json!({"session_id": id});
        let one = key("session::append", "k", "a", session("s"));
        assert_eq!(key("session::append", "k", "a", session("s")), one);
        for other in [
            key("session::append", "l", "a", session("s")),
            key("session::append", "k", "b", session("s")),
            key("session::append", "k", "a", session("t")),
            key("session::append-many", "k", "a", session("s")),
        ] {
            assert_ne!(other, one);
        }
        let none = idempotency_key("session::append", &HeaderMap::new(), "a", &Map::new());
        assert_eq!(none.unwrap(), None);
    }
}
