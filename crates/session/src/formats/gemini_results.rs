//! Function responses of the Gemini API.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::block::{joined_text, kept_members};
use super::gemini::{FORMAT, RESULT, next_name, part, with_inner, write_parts};
use super::read::{Members, typed};
use super::write::{Mapping, Object, own_members, take_members, to_json};
use crate::members::UnknownMembers;
use crate::{ContentBlock, FunctionResultBlock, RawJson};

/// The name of a function, kept with its result.
const NAME: &str = "$name";

/// Keeps the name of the function with a result that becomes a block: a response needs it.
pub(super) fn keep_name(unknown: &mut UnknownMembers, name: &str) {
    if name.is_empty() {
        return;
    }
    let mut own = own_members(FORMAT, unknown);
    own.set(NAME, to_json(name));
    unknown.extend(kept_members(FORMAT, own));
}

/// Takes the name of the function out of what a result keeps.
pub(super) fn take_name(unknown: &mut UnknownMembers) -> String {
    let mut own = own_members(FORMAT, unknown);
    let name = own.remove(NAME).and_then(|name| typed(name.raw())).unwrap_or_default();
    unknown.remove(FORMAT.name());
    unknown.extend(kept_members(FORMAT, own));
    name
}

pub(super) fn result_block(
    mut result: Members<'_>,
    members: Members<'_>,
    names: &mut HashMap<String, usize>,
) -> ContentBlock {
    let name = result.take_text("name").unwrap_or_default();
    let given = result.take_text("id");
    let response = result.get("response").and_then(Members::of).unwrap_or_default();
    let is_error = response.has("error") && !response.has("output") && !response.has("result");
    let mut content = vec![ContentBlock::text(response_text(result.get("response"), response))];
    if let Some(parts) = result.take_list("parts") {
        content.extend(parts.into_iter().map(|raw| part(raw, names)));
    }
    let mut rest = result.into_unknown();
    let function_call_id = given.unwrap_or_else(|| {
        rest.set("id", RawJson::default());
        next_name(names, &name)
    });
    let mut rest = with_inner(members, RESULT, &rest);
    rest.set(NAME, to_json(&name));
    ContentBlock::FunctionResult(FunctionResultBlock {
        function_call_id,
        content,
        is_error: Some(is_error),
        unknown: kept_members(FORMAT, rest),
    })
}

/// The text of a response: that of its only member, or all of it as JSON.
fn response_text(raw: Option<&RawValue>, mut response: Members<'_>) -> String {
    for key in ["output", "result", "error"] {
        if let Some(text) = response.text(key) {
            response.take(key);
            if response.is_empty() {
                return text;
            }
        }
    }
    raw.map(|raw| raw.get().to_owned()).unwrap_or_default()
}

pub(super) fn write_result(
    at: &str,
    result: &FunctionResultBlock,
    function_id: Option<&str>,
    mapping: &mut Mapping,
) -> RawJson {
    let mut kept = mapping.kept(at, &result.unknown, &[]);
    let mut inner = take_members(&mut kept, RESULT);
    let own_name = kept.remove(NAME).and_then(|name| typed::<String>(name.raw()));
    let name = function_id.map(str::to_owned).or(own_name).unwrap_or_default();
    let has_id = !inner.remove("id").is_some_and(|id| id.is_null());
    let id = has_id.then_some(&result.function_call_id);
    let mut object = Object::default().and_some("id", id).and("name", name);
    let text = joined_text(&result.content);
    // The response as it came, if it still equals what is shown.
    let response = inner.remove("response");
    let same = response.as_ref().is_some_and(|raw| {
        response_text(Some(raw.raw()), Members::of(raw.raw()).unwrap_or_default()) == text
    });
    let key = if result.is_error == Some(true) { "error" } else { "output" };
    match response.filter(|_| same) {
        Some(response) => object.put("response", response),
        None => object.put("response", Object::with(key, &text).into_raw()),
    }
    let media: Vec<ContentBlock> =
        result.content.iter().filter(|block| block.as_text().is_none()).cloned().collect();
    let media = write_parts(at, &media, None, mapping);
    object.put_some("parts", Some(media).filter(|media| !media.is_empty()));
    Object::with(RESULT, object.with_kept(inner)).with_kept(kept)
}
