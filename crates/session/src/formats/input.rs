//! From an API's response to a message of its next request.

use super::read::{Members, list};
use super::write::{Mapping, escaped, to_json};
use crate::members::UnknownMembers;
use crate::{LossReason, RawJson};

/// Keeps only the members that a request may have. A message without others stays as it is, byte for byte.
pub(super) fn only(json: RawJson, allowed: &[&str], mapping: &mut Mapping) -> RawJson {
    let Some(members) = Members::parse(json.get()) else { return json };
    let members = members.into_unknown();
    if members.iter().all(|(key, _)| allowed.contains(&key)) {
        return json;
    }
    let mut left = UnknownMembers::NONE;
    for (key, value) in members {
        if allowed.contains(&key.as_str()) {
            left.set(key, value);
        } else {
            mapping.note(format!("/{}", escaped(&key)), LossReason::NotInput);
        }
    }
    to_json(&left)
}

/// The object in the first item of a list: the message inside an API's response. The rest of the response is noted as
/// lost.
pub(super) fn first_in(
    json: &RawJson,
    items: &str,
    inner: &str,
    mapping: &mut Mapping,
) -> Option<RawJson> {
    let members = Members::parse(json.get())?;
    let first = list(members.get(items)?)?.first().copied()?;
    let found = Members::of(first)?.get(inner).map(RawJson::from)?;
    for (key, _) in members.into_unknown() {
        if key != items {
            mapping.note(format!("/{}", escaped(&key)), LossReason::NotInput);
        }
    }
    Some(found)
}
