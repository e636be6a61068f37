//! How names are written, and the groups of operations.

/// `append_delta` as `appendDelta`.
pub(super) fn camel_case(name: &str) -> String {
    let mut words = name.split(['-', ':', '_', '.']).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |made, word| made + &capitalised(word))
}

/// `function_result` as `FunctionResult`.
pub(super) fn pascal_case(name: &str) -> String {
    capitalised(&camel_case(name))
}

/// A word with a capital first letter.
pub(in crate::api) fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The group of a path's operations: the one that its first part names, or else the server.
pub(super) fn tag(path: &str) -> &'static str {
    let first = path.split('/').nth(2).unwrap_or_default();
    TAGS.iter().map(|(tag, _)| *tag).find(|tag| *tag == first).unwrap_or("server")
}

/// The groups in reading order, with a description of each. Spectral and Redocly refuse an operation whose group is
/// missing here.
pub(super) const TAGS: &[(&str, &str)] = &[
    ("sessions", "Sessions, their entries and their branches."),
    ("events", "Live events, as server-sent events."),
    ("watch", "Events by position, for callers who ask again and again."),
    ("search", "Search in everything that was said."),
    ("record", "Events of agents, recorded as sessions."),
    ("kv", "Small documents by key."),
    ("stats", "Tokens, cost and time, added up."),
    ("trash", "Deleted sessions that can still be brought back."),
    ("browsers", "Logging in, and tickets for streams."),
    ("server", "The server itself."),
    ("config", "How the configuration was applied."),
    ("call", "Every function by its name."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_clients_write_them() {
        assert_eq!(camel_case("set_active_leaf"), "setActiveLeaf");
        assert_eq!(pascal_case("function_result"), "FunctionResult");
    }
}
