//! Unknown names, and the known name that is probably meant.

use bough_service::Request;

use super::fields::Field;
use super::problem::Problem;

/// How similar two names must be, of 1, for one to be suggested for the other.
const ALIKE: f64 = 0.6;

/// The code of a request with a name that is not known.
pub(super) const UNKNOWN_MEMBER: &str = "http/unknown_member";
pub(super) const UNKNOWN_HINT: &str = "Correct the name, or leave it out; /docs lists the fields.";

/// Refuses a request with a member that its function does not have. If a misspelt `expected_leaf` were ignored, the
/// write would have no condition.
pub(crate) fn check_names(
    request: &Request,
    fields: &[Field],
    in_path: &[&str],
) -> Result<(), Problem> {
    unknown_name(request, fields, in_path).map_or(Ok(()), |(name, detail)| {
        let problem = Problem::bad_request(&*detail, UNKNOWN_HINT).with_code(UNKNOWN_MEMBER);
        Err(problem.at(&name, &detail))
    })
}

/// A member that a function does not have, and words about it.
pub(super) fn unknown_name(
    request: &Request,
    fields: &[Field],
    in_path: &[&str],
) -> Option<(String, String)> {
    let known = || fields.iter().map(|field| field.name.as_str()).chain(in_path.iter().copied());
    let name = request.names().find(|name| known().all(|field| field != *name))?;
    Some((name.to_owned(), words(name, known())))
}

fn words<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(name, known) {
        Some(meant) => format!("there is no field `{name}` here: did you mean `{meant}`?"),
        None => format!("there is no field `{name}` here"),
    }
}

/// The known name that is most similar to another, if one is similar enough.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let alike = known.map(|known| (strsim::normalized_levenshtein(&name, known), known));
    let best = alike.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= ALIKE).then_some(best.1)
}

/// The name that the decoder's message says is not known, and words about it with the name that is probably meant; `None` if
/// the message is about something else.
pub(crate) fn with_nearest(detail: &str) -> Option<(&str, String)> {
    let mut quoted = detail.strip_prefix("unknown field")?.split('`').skip(1).step_by(2);
    let name = quoted.next()?;
    Some((name, words(name, quoted)))
}

/// The place of an unknown name, as a JSON pointer. The decoder's place ends with the name, or with the object that has it.
pub(super) fn place_of(name: &str, place: &str) -> String {
    let step = format!("/{}", escaped(name));
    if place.ends_with(&step) { place.to_owned() } else { format!("{place}{step}") }
}

/// A name as a step of a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let known = ["expected_leaf", "entry_id", "message"];
        let find = |name| nearest(name, known.into_iter());
        assert_eq!(find("expected_Leaf"), Some("expected_leaf"));
        assert_eq!(find("entryId"), Some("entry_id"));
        assert_eq!(find("mesage"), Some("message"));
        assert_eq!(find("zzz"), None);
        let decoder = "unknown field `entri_id`, expected one of `entry_id`, `message`";
        let (name, words) = with_nearest(decoder).unwrap();
        assert_eq!(name, "entri_id");
        assert!(words.ends_with("did you mean `entry_id`?"));
        assert_eq!(with_nearest("missing field `x`"), None);
        assert_eq!(place_of("inputs", "/usage"), "/usage/inputs");
        assert_eq!(place_of("a/b", "/usage/a~1b"), "/usage/a~1b");
    }
}
