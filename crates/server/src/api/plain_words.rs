//! Rewrites the decoder's messages in words of JSON: they name Rust's types, which a caller that sends JSON does not
//! know.

/// Between the place of an event and what is wrong with it.
pub(super) const NOT_AN_EVENT: &str = " is not an event: ";

/// The error of a request in plain words. Messages that are not the decoder's stay as they are.
pub(crate) fn plain(detail: &str) -> String {
    let detail = without_position(detail);
    if let Some((place, why)) = detail.split_once(NOT_AN_EVENT) {
        return format!("{place}{NOT_AN_EVENT}{}", plain(why));
    }
    if let Some((before, inner, after)) = in_brackets(detail) {
        return format!("{before}({}){after}", plain(inner)).replace("`` must", "it must");
    }
    let (main, place) = match detail.rsplit_once(", in `") {
        Some((main, place)) => (main, format!("`{place}")),
        None => (detail, "it".to_owned()),
    };
    let about = |prefix: &str| main.strip_prefix(prefix);
    if let Some(rest) = about("missing field ") {
        return format!("{rest} is missing");
    }
    if about("data did not match any variant").is_some() {
        return format!("{place} has a form that is not known here");
    }
    if let Some((met, expected)) =
        about("unknown variant ").and_then(|rest| rest.split_once(", expected "))
    {
        return format!("{place} must be {expected}, not {met}");
    }
    let typed = ["invalid type: ", "invalid value: ", "invalid length: "];
    let typed = typed.iter().find_map(|prefix| about(prefix)?.rsplit_once(", expected "));
    match typed {
        Some((met, expected)) => {
            format!("{place} must be {}, not {}", kind(expected), found(met))
        }
        None => detail.replace("`` must", "it must"),
    }
}

/// The decoder's message in brackets inside a sentence of ours.
fn in_brackets(detail: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = detail.split_once("(invalid ")?;
    let (_, after) = rest.rsplit_once(')')?;
    let inner = detail.get(before.len() + 1..detail.len() - after.len() - 1)?;
    Some((before, inner, after))
}

/// Removes the position in a text that the caller never saw.
fn without_position(detail: &str) -> &str {
    match detail.rsplit_once(" at line ") {
        Some((before, place)) if place.bytes().all(|b| b.is_ascii_alphanumeric() || b == b' ') => {
            before
        }
        _ => detail,
    }
}

/// The JSON name of a type.
fn kind(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" | "a nonzero u64" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a map" | "map" | "struct variant" | "newtype variant" => "an object",
        "unit variant" => "a text",
        "a sequence" | "sequence" => "a list",
        "a boolean" => "`true` or `false`",
        "variant identifier" | "string or map" => "one of the known words",
        other
            if ["struct ", "internally tagged enum ", "adjacently tagged enum "]
                .iter()
                .any(|name| other.starts_with(name)) =>
        {
            "an object"
        }
        other if other.starts_with("enum ") => "one of the known words",
        other if other.starts_with("tuple ") || other.starts_with("an array") => "a list",
        other => other,
    }
}

/// The JSON name of the found value.
fn found(met: &str) -> String {
    match met {
        "map" | "struct variant" | "newtype variant" => "an object".to_owned(),
        "unit variant" => "a text".to_owned(),
        "sequence" => "a list".to_owned(),
        "unit value" | "null" | "Option value" => "`null`".to_owned(),
        _ => {
            let quoted = ["integer ", "floating point ", "boolean "];
            let bare = quoted.iter().find_map(|name| met.strip_prefix(name));
            let text = met.strip_prefix("string ").map(|text| format!("the text {text}"));
            text.unwrap_or_else(|| bare.unwrap_or(met).to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_that_json_has() {
        let check = |decoder: &str, plainly: &str| assert_eq!(plain(decoder), plainly);
        check(
            r#"invalid type: string "x", expected u32, in `block`"#,
            r#"`block` must be a whole number, 0 or more, not the text "x""#,
        );
        check(
            "invalid value: integer `-1`, expected u32, in `block`",
            "`block` must be a whole number, 0 or more, not `-1`",
        );
        check(
            "invalid type: integer `5`, expected struct NewEntry, in `entries`",
            "`entries` must be an object, not `5`",
        );
        check(
            "invalid type: map, expected a sequence, in `entries`",
            "`entries` must be a list, not an object",
        );
        check(
            "unknown variant `bored`, expected one of `idle`, `working`, in `status`",
            "`status` must be one of `idle`, `working`, not `bored`",
        );
        check("missing field `block`", "`block` is missing");
        check(
            "data did not match any variant of untagged enum StreamError, in `error`",
            "`error` has a form that is not known here",
        );
        check(
            "not a message of the format `bough`: `` must be a whole message (invalid value: integer `-5`, expected u64 at line 1 column 53)",
            "not a message of the format `bough`: it must be a whole message (it must be a whole number, 0 or more, not `-5`)",
        );
        check("the session is busy", "the session is busy");
        check(
            "not a message of the format `bough`: `` must be an object",
            "not a message of the format `bough`: it must be an object",
        );
        check(
            "invalid type: string \"a, expected b\", expected u64",
            "it must be a whole number, 0 or more, not the text \"a, expected b\"",
        );
    }
}
