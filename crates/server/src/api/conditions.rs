//! Preconditions and repeatable requests: what `If-Match`, `If-None-Match` and `Idempotency-Key` mean to a function.
//!
//! | resource | its `ETag` | `If-Match` on a write means |
//! |---|---|---|
//! | a session | its incarnation, position and version | `expected_version`: entries that arrive meanwhile do not fail a change |
//! | an entry | its session's incarnation and its revision | `expected_revision` in that incarnation |
//! | a session's entries | its active leaf | `expected_leaf` |
//! | a document | its version | `expected_version`; `If-None-Match: *` means that there is none |

use bough_service::{
    Answer, CallTerms, Function, Precondition, Repeat, Request, Scope, ServiceError,
    percent_decode, percent_encode,
};
use bough_session::Incarnation;
use http::HeaderMap;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::problem::Problem;
use crate::guard::Caller;
use crate::limits::IDEMPOTENCY_KEY_BYTES_MAX;

/// The header with the key of a request.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// An opaque tag for a text: quoted, and only with characters that a header can hold.
pub(crate) fn tag(text: &str) -> String {
    format!("\"{}\"", percent_encode(text))
}

/// The text of a tag that [`tag`] made.
fn untag(tag: &str) -> Option<String> {
    percent_decode(tag.strip_prefix('"')?.strip_suffix('"')?)
}

/// Whether the caller already has the version with this tag.
pub(crate) fn is_known_to_caller(headers: &HeaderMap, tag: &str) -> bool {
    headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        let same = |item: &str| item == tag || item.strip_prefix("W/") == Some(tag);
        value.trim() == "*" || value.split(',').map(str::trim).any(same)
    })
}

/// The tag of an entry. An id that is used again in a later incarnation of its session is another
/// entry.
pub(crate) fn entry_tag(incarnation: Incarnation, revision: u64) -> String {
    tag(&format!("{incarnation}.{revision}"))
}

/// The conditions that the headers of a request set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    if_match: IfMatch,
    keys: Option<CallKeys>,
}

/// What an `Idempotency-Key` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CallKeys {
    /// The call of one function on one session.
    call: [u8; 32],
    /// The key itself, among those of its tenant; `None` where the key is not what makes the call repeatable.
    tenant: Option<[u8; 32]>,
}

/// The condition of `If-Match`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct IfMatch {
    /// Whether there is something to be met.
    is_there: bool,
    /// The incarnation of the session that the caller named.
    incarnation: Option<Incarnation>,
}

impl Conditions {
    /// Reads the headers, and puts their conditions into the request.
    pub(crate) fn of(
        function: &Function,
        headers: &HeaderMap,
        caller: &Caller,
        request: &mut Request,
    ) -> Result<Self, Problem> {
        refuse_if_none_match(function, headers)?;
        let if_match = apply_if_match(function.precondition, headers, request)?;
        let keys = idempotency_key(function, headers, &caller.scope, request)?;
        Ok(Self { if_match, keys })
    }

    pub(crate) fn terms(self) -> CallTerms {
        CallTerms {
            key: self.keys.map(|keys| keys.call),
            tenant_key: self.keys.and_then(|keys| keys.tenant),
            incarnation: self.if_match.incarnation,
        }
    }

    /// The incarnation of the session that the caller named.
    pub(crate) const fn incarnation(self) -> Option<Incarnation> {
        self.if_match.incarnation
    }

    /// A conflict with a header is a failed precondition; with a field of the body, a conflict.
    pub(crate) fn problem(self, error: ServiceError) -> Problem {
        let is_conflict = matches!(
            error,
            ServiceError::LeafConflict { .. }
                | ServiceError::OtherIncarnation { .. }
                | ServiceError::RevisionConflict { .. }
                | ServiceError::VersionConflict { .. }
                | ServiceError::DocumentConflict { .. }
        );
        let problem = Problem::from(error);
        let failed = is_conflict && self.if_match.is_there;
        if failed { problem.into_failed_precondition() } else { problem }
    }

    /// Refuses an answer that reports no change because the revision differs.
    pub(crate) fn check(self, answer: &Answer) -> Result<(), Problem> {
        match answer.stale {
            Some(revision) => Err(self.problem(ServiceError::RevisionConflict { revision })),
            None => Ok(()),
        }
    }
}

/// Puts the precondition of `If-Match` into the request, and returns which one it was.
fn apply_if_match(
    precondition: Option<Precondition>,
    headers: &HeaderMap,
    request: &mut Request,
) -> Result<IfMatch, Problem> {
    let mut given = headers.get_all(IF_MATCH).iter();
    let (Some(value), more) = (given.next(), given.next()) else {
        return apply_if_none_match(precondition, headers, request);
    };
    let precondition = precondition.ok_or_else(no_precondition)?;
    let value = value.to_str().unwrap_or_default().trim();
    if value == "*" {
        return Ok(IfMatch::default());
    }
    let text = untag(value).filter(|_| more.is_none()).ok_or_else(not_one_tag)?;
    let (field, wanted, incarnation) = match precondition {
        Precondition::Leaf if is_of_a_session(&text) => return Err(not_of_a_leaf()),
        Precondition::Leaf => ("expected_leaf", Value::String(text), None),
        Precondition::Version => {
            let (_, version) = text.rsplit_once('.').ok_or_else(not_one_tag)?;
            ("expected_version", Value::String(version.to_owned()), None)
        }
        Precondition::Document => {
            let version = text.parse::<u64>().map_err(|_| not_one_tag())?;
            ("expected_version", Value::from(version), None)
        }
        Precondition::Revision => {
            let (incarnation, revision) = text.split_once('.').ok_or_else(not_one_tag)?;
            let revision = revision.parse::<u64>().map_err(|_| not_one_tag())?;
            let incarnation = incarnation.parse().map_err(|_| not_one_tag())?;
            ("expected_revision", Value::from(revision), Some(incarnation))
        }
    };
    ask_for(request, "If-Match", field, wanted)?;
    Ok(IfMatch { is_there: true, incarnation })
}

/// Refuses an `If-None-Match` of a write that does not go by it: the caller means that nothing is to be replaced.
fn refuse_if_none_match(function: &Function, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(value) = headers.get(IF_NONE_MATCH) else { return Ok(()) };
    // A reader has it to be spared an answer that it knows.
    let is_read = function.repeat == Repeat::Harmless;
    if is_read || (function.precondition == Some(Precondition::Document) && is_any(value)) {
        return Ok(());
    }
    let hint = "Leave it out; `If-None-Match: *` puts a document that must not be there yet.";
    Err(Problem::bad_request("this request has no precondition by this If-None-Match", hint))
}

/// Refuses conditions of a request that is not made conditional by headers.
pub(crate) fn refuse_conditions(headers: &HeaderMap, hint: &'static str) -> Result<(), Problem> {
    if !headers.contains_key(IF_MATCH) && !headers.contains_key(IF_NONE_MATCH) {
        return Ok(());
    }
    Err(Problem::bad_request("this request takes no If-Match and no If-None-Match", hint))
}

/// Whether a condition is met by whatever is there.
fn is_any(value: &http::HeaderValue) -> bool {
    value.as_bytes().trim_ascii() == b"*"
}

/// A write with `If-None-Match: *` creates something that must not exist yet. Only documents are written so.
fn apply_if_none_match(
    precondition: Option<Precondition>,
    headers: &HeaderMap,
    request: &mut Request,
) -> Result<IfMatch, Problem> {
    let must_not_exist = headers.get(IF_NONE_MATCH).is_some_and(is_any);
    if precondition != Some(Precondition::Document) || !must_not_exist {
        return Ok(IfMatch::default());
    }
    ask_for(request, "If-None-Match", "expected_version", Value::from(0))?;
    Ok(IfMatch { is_there: true, incarnation: None })
}

/// Sets a field to the value that a header asks for, unless the request has another value.
fn ask_for(request: &mut Request, header: &str, field: &str, wanted: Value) -> Result<(), Problem> {
    if request.put(field, wanted) {
        return Ok(());
    }
    let detail = format!("{header} and `{field}` say different things");
    Err(Problem::bad_request(detail, "Send one of the two."))
}

/// Whether a tag names a state of a session, or a page of it, and so no leaf.
fn is_of_a_session(text: &str) -> bool {
    text.split_once('.').is_some_and(|(first, _)| first.parse::<Incarnation>().is_ok())
}

fn not_of_a_leaf() -> Problem {
    let detail = "this ETag names the session or a page of it, and an append is conditional on the active leaf";
    let hint = "Send the ETag of the last append's answer, or `expected_leaf` with the session's `active_leaf`.";
    Problem::bad_request(detail, hint)
}

fn not_one_tag() -> Problem {
    let detail = "If-Match must be one ETag that this server gave, or *";
    Problem::bad_request(
        detail,
        "Send the ETag of the entry, of the session's entries, of the session, or of the document.",
    )
}

fn no_precondition() -> Problem {
    let detail = "this resource has no precondition by If-Match";
    let hint = "Entries have one (their revision), so have the active leaf, the session itself and documents.";
    Problem::bad_request(detail, hint)
}

/// Refuses an `Idempotency-Key` of a request that is not made repeatable by one.
pub(crate) fn refuse_key(headers: &HeaderMap, hint: &'static str) -> Result<(), Problem> {
    if !headers.contains_key(IDEMPOTENCY_KEY) {
        return Ok(());
    }
    Err(Problem::bad_request("this request takes no Idempotency-Key", hint))
}

/// The key that makes a request repeatable. Ids that the service would draw are derived from it, so the same key means
/// the same entries or session, also after a restart. `None` if the caller gave no `Idempotency-Key`.
///
/// A key belongs to the caller's sessions and not to the token: a caller may repeat a request with another token.
fn idempotency_key(
    function: &Function,
    headers: &HeaderMap,
    scope: &Scope,
    request: &Request,
) -> Result<Option<CallKeys>, Problem> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let key = key.as_bytes();
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX {
        let detail = format!("Idempotency-Key has 1 to {IDEMPOTENCY_KEY_BYTES_MAX} bytes");
        return Err(Problem::bad_request(detail, "Use a fresh UUID for each new request."));
    }
    if function.repeat == Repeat::Refused {
        refuse_key(headers, "Send it without: only instances of one store call this function.")?;
    }
    if function.repeat == Repeat::ByRevision && request.get("expected_revision").is_none() {
        // A step creates nothing that could be found again; its revision identifies it.
        let detail = "a delta is not made repeatable by Idempotency-Key alone";
        let hint = "Send `expected_revision` or If-Match: a delta that was added already is then not added again.";
        return Err(Problem::bad_request(detail, hint));
    }
    let named = request.text("session_id").or_else(|| request.text("scope"));
    let session = named.unwrap_or_default();
    let tenant = Value::Object(scope.metadata().clone()).to_string();
    let digest = |parts: &[&str]| -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in parts.iter().map(|part| part.as_bytes()).chain([key]) {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    };
    let is_by_key = function.repeat.is_by_key();
    Ok(Some(CallKeys {
        call: digest(&["bough idempotency key", &tenant, function.id, &session]),
        tenant: is_by_key.then(|| digest(&["bough idempotency key of a tenant", &tenant])),
    }))
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

    fn apply(
        precondition: Option<Precondition>,
        tag: &str,
        body: Value,
    ) -> Result<(IfMatch, Request), Problem> {
        let mut request = Request::from(body);
        let found = apply_if_match(precondition, &headers("if-match", tag), &mut request)?;
        Ok((found, request))
    }

    #[test]
    fn if_match_becomes_the_functions_own_precondition() {
        let incarnation = Incarnation::new([7; 16]);
        let revision = Some(Precondition::Revision);
        let (found, request) =
            apply(revision, &entry_tag(incarnation, 3), json!({"content": []})).unwrap();
        assert_eq!(found, IfMatch { is_there: true, incarnation: Some(incarnation) });
        assert_eq!(request.get("expected_revision"), Some(json!(3)));
        let (_, request) = apply(Some(Precondition::Leaf), "\"\"", json!({})).unwrap();
        assert_eq!(request.get("expected_leaf"), Some(json!("")));
    }

    #[test]
    fn a_document_is_written_over_a_version_or_over_nothing() {
        let document = Some(Precondition::Document);
        let (found, request) = apply(document, "\"7\"", json!({})).unwrap();
        assert!(found.is_there);
        assert_eq!(request.get("expected_version"), Some(json!(7)));
        apply(document, "\"x\"", json!({})).unwrap_err();
        let mut request = Request::from(json!({}));
        let found = apply_if_match(document, &headers("if-none-match", "*"), &mut request).unwrap();
        assert!(found.is_there);
        assert_eq!(request.get("expected_version"), Some(json!(0)));
        let mut other = Request::from(json!({}));
        apply_if_match(Some(Precondition::Leaf), &headers("if-none-match", "*"), &mut other)
            .unwrap();
        assert_eq!(other.names().count(), 0);
    }

    #[test]
    fn a_precondition_that_cannot_be_kept_is_refused() {
        let revision = Some(Precondition::Revision);
        for tag in ["\"x\"", "3", "\"3\""] {
            apply(revision, tag, json!({})).unwrap_err();
        }
        let tag = entry_tag(Incarnation::new([7; 16]), 3);
        apply(revision, &tag, json!({"expected_revision": 4})).unwrap_err();
        apply(None, "\"3\"", json!({})).unwrap_err();
        let (any, _) = apply(Some(Precondition::Leaf), "*", json!({})).unwrap();
        assert_eq!(any, IfMatch::default());
    }

    #[test]
    fn a_key_is_of_one_tenant_one_function_and_one_session() {
        let function = |id: &str| bough_service::function(id).unwrap();
        let key = |id, key: &str, owner: &str, session: &str| {
            let scope = Scope::owner();
            let metadata = json!({"owner": owner}).as_object().unwrap().clone();
            let scope = scope.only_sessions_with(metadata);
            let request = json!({"session_id": session}).into();
            idempotency_key(function(id), &headers("idempotency-key", key), &scope, &request)
                .unwrap()
                .unwrap()
                .call
        };
        let one = key("session::append", "k", "a", "s");
        assert_eq!(key("session::append", "k", "a", "s"), one);
        for other in [
            key("session::append", "l", "a", "s"),
            key("session::append", "k", "b", "s"),
            key("session::append", "k", "a", "t"),
            key("session::append-many", "k", "a", "s"),
        ] {
            assert_ne!(other, one);
        }
        let (append, none) = (function("session::append"), HeaderMap::new());
        let none = idempotency_key(append, &none, &Scope::owner(), &json!({}).into());
        assert_eq!(none.unwrap(), None);
    }
}
