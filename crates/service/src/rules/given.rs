//! The entries of a request: a message in a format, or a document of the application.

use bough_session::limits::{check_given, check_message, check_opaque, check_origin};
use bough_session::{
    AgentMessage, Canonical, EntryBody, EntryId, Format, FormatError, JsonMap, NewMessage,
    OpaqueBody, RESERVED_PREFIX, RawJson, RequestDigest, json_without_space,
};
use sha2::{Digest, Sha256};

use crate::api::NewEntry;
use crate::error::ServiceError;
use crate::request::why_not;

/// The member of a session's metadata with the default format of its messages.
pub(crate) const DEFAULT_FORMAT: &str = "message_format";

/// An entry that a request wants appended.
pub(crate) struct GivenEntry {
    /// Its id.
    pub(crate) id: EntryId,
    /// Whether the caller chose the id.
    pub(crate) is_chosen: bool,
    pub(crate) parent: GivenParent,
    pub(crate) origin: Option<JsonMap>,
    pub(crate) digest: Option<RequestDigest>,
    pub(crate) content: GivenContent,
}

/// Where an entry is to hang.
#[derive(Clone, Debug)]
pub(crate) enum GivenParent {
    /// Below the entry before it in the request; the first one below the active leaf.
    EntryBefore,
    /// Below nothing: it begins a new tree.
    Nothing,
    /// Below this entry, which must exist.
    Entry(EntryId),
}

impl GivenParent {
    /// Whether the request names another parent than this one.
    pub(crate) fn is_other(&self, parent: Option<&EntryId>) -> bool {
        match self {
            Self::EntryBefore => false,
            Self::Nothing => parent.is_some(),
            Self::Entry(given) => Some(given) != parent,
        }
    }

    /// For requests in which `null` means the default.
    pub(crate) fn or_entry_before(parent_id: Option<EntryId>) -> Self {
        parent_id.map_or(Self::EntryBefore, Self::Entry)
    }

    /// For requests in which `null` means no parent.
    fn of(parent_id: Option<Option<EntryId>>) -> Self {
        match parent_id {
            None => Self::EntryBefore,
            Some(None) => Self::Nothing,
            Some(Some(id)) => Self::Entry(id),
        }
    }
}

/// What the entry is to hold.
pub(crate) enum GivenContent {
    /// This, which was checked.
    Body(EntryBody),
    /// A message as it came, in its format or the session's.
    Message { format: Option<Format>, json: RawJson },
}

impl GivenEntry {
    /// Reads one entry of a request. `at` is its path in the request; `drawn` is its id if the caller chose none;
    /// `count` is the number of entries in the request.
    pub(crate) fn read(
        entry: NewEntry,
        at: &str,
        drawn: EntryId,
        count: usize,
    ) -> Result<Self, ServiceError> {
        entry.origin.as_ref().map_or(Ok(()), check_origin)?;
        let is_chosen = entry.entry_id.is_some();
        // An id from a key belongs to the whole request: with another number of entries it is
        // another request.
        let count = if is_chosen { 0 } else { count };
        let (digest, content) = match (entry.message, entry.custom) {
            (Some(json), None) => {
                let name = entry.format.map_or("", Format::name);
                let digest = digest(&["message", name], &json, count);
                (digest, GivenContent::Message { format: entry.format, json })
            }
            (None, Some(custom)) => {
                let digest = digest(&["custom", &custom.custom_type], &custom.data, count);
                (digest, GivenContent::Body(document(custom)?))
            }
            (Some(_), Some(_)) => return Err(one_of_two(at, ", not both")),
            (None, None) => return Err(one_of_two(at, "")),
        };
        Ok(Self {
            id: entry.entry_id.unwrap_or(drawn),
            is_chosen,
            parent: GivenParent::of(entry.parent_id),
            origin: entry.origin,
            digest: Some(digest),
            content,
        })
    }

    /// The body of the entry, in a session with the default format `default`.
    pub(crate) fn body(
        &self,
        at: &str,
        default: impl FnOnce() -> Result<Format, ServiceError>,
    ) -> Result<EntryBody, ServiceError> {
        let (format, json) = match &self.content {
            GivenContent::Body(body) => return Ok(body.clone()),
            GivenContent::Message { format: Some(format), json } => (*format, json),
            GivenContent::Message { format: None, json } => (default()?, json),
        };
        let body = match canonical(format, json) {
            Some(message) => EntryBody::Message(message.into()),
            None => format.body(json.clone()).map_err(|error| no_message(&error, at, json))?,
        };
        match &body {
            EntryBody::Message(message) => check_message(message)?,
            _ => match format.to_canonical(json, 0) {
                Canonical::Message(message) => check_given(json, &message)?,
                Canonical::Custom(custom) => check_opaque(&OpaqueBody {
                    custom_type: custom.custom_type,
                    data: json.clone(),
                })?,
            },
        }
        Ok(body)
    }
}

/// A message without members that the canonical message lacks, whatever their order. It is stored as canonical, because
/// stores in session-manager's form show only those as messages.
fn canonical(format: Format, json: &RawJson) -> Option<AgentMessage> {
    if format != Format::Bough {
        return None;
    }
    let message: AgentMessage = serde_json::from_str(json.get()).ok()?;
    let usual = serde_json::to_value(&message).ok()?;
    (usual == json.value()).then_some(message)
}

/// A document as it is stored. Reserved names are bookkeeping, which we parse.
fn document(custom: OpaqueBody) -> Result<EntryBody, ServiceError> {
    check_opaque(&custom)?;
    if custom.custom_type.starts_with(RESERVED_PREFIX) {
        return Ok(EntryBody::Custom(custom.to_custom()));
    }
    Ok(EntryBody::Opaque(custom))
}

fn one_of_two(at: &str, not_both: &str) -> ServiceError {
    ServiceError::Malformed {
        detail: format!("supply exactly one of `message` and `custom`{not_both}"),
        path: at.to_owned(),
    }
}

fn no_message(error: &FormatError, at: &str, json: &RawJson) -> ServiceError {
    // The check names the whole message where the decoder refuses a member.
    let is_vague = error.format == Format::Bough && error.pointer.is_empty();
    let member = is_vague.then(|| why_not::<NewMessage>(json.get(), "role")).flatten();
    if let Some((detail, member)) = member.filter(|(_, member)| !member.is_empty()) {
        return ServiceError::Malformed { detail, path: format!("{at}/message{member}") };
    }
    let path = format!("{at}/message{}", error.pointer);
    ServiceError::Malformed { detail: error.to_string(), path }
}

/// The digest of a request's content for an entry. Space between JSON tokens does not count, because a repeated request
/// may be printed anew.
fn digest(names: &[&str], json: &RawJson, count: usize) -> RequestDigest {
    let mut hash = Sha256::new();
    for name in names {
        hash.update(name.len().to_be_bytes());
        hash.update(name);
    }
    hash.update(count.to_be_bytes());
    hash_without_space(&mut hash, json.get());
    RequestDigest(hash.finalize().into())
}

/// Hashes JSON without the space between its tokens.
pub(crate) fn hash_without_space(hash: &mut Sha256, json: &str) {
    json_without_space(json).for_each(|part| hash.update(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_what_is_said() {
        let of =
            |text: &str, count| digest(&["custom", "t"], &RawJson::parse(text).unwrap(), count);
        let one = of(r#"{"a": "x y", "b":[1, 2]}"#, 1);
        assert_eq!(of(r#"{"a":"x y","b":[1,2]}"#, 1), one);
        assert_ne!(of(r#"{"a":"xy","b":[1,2]}"#, 1), one, "space in a text counts");
        assert_ne!(of(r#"{"a":"x y","b":[12]}"#, 1), one);
        assert_ne!(of(r#"{"a": "x y", "b":[1, 2]}"#, 2), one);
        let escaped = of(r#"{"a":"\" b"}"#, 0);
        assert_ne!(of(r#"{"a":"\"b"}"#, 0), escaped, "an escaped quote ends no text");
    }
}
