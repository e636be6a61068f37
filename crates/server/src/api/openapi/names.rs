//! The names of operations, their groups and the shapes of their bodies.

/// The name of a function's operation.
///
/// Names of functions are short because their namespace gives the context; generated clients have no such namespace.
pub(super) fn operation_id(function_id: &str) -> String {
    let name = function_id.strip_prefix("session::").unwrap_or(function_id);
    let known = match name {
        "create" => "createSession",
        "ensure" => "ensureSession",
        "describe" => "getSession",
        "sessions" => "listSessions",
        "delete" => "deleteSession",
        "patch" => "updateSession",
        "archive" => "archiveSession",
        "unarchive" => "unarchiveSession",
        "fork" => "forkSession",
        "undelete" => "undeleteSession",
        "purge" => "purgeSession",
        "append-entry" => "appendEntry",
        "append-entries" => "appendEntries",
        "update-message" => "replaceMessage",
        "finish-message" => "finishMessage",
        "path" => "listMessages",
        "path-tail" => "listNewestMessages",
        "entries" => "listEntries",
        "entry" => "getEntry",
        "hide-entries" => "hideEntries",
        "kv::put" => "putDocument",
        "kv::write" => "writeDocuments",
        "kv::get" => "getDocument",
        "kv::list" => "listDocuments",
        "kv::delete" => "deleteDocument",
        "branches" => "listBranches",
        "compare" => "compareBranches",
        "tree" => "getTree",
        "stats" => "getStats",
        "raw" => "readRecords",
        "usage" => "getUsage",
        "context" => "getContext",
        "search-status" => "getSearchStatus",
        "reindex" => "rebuildSearchIndex",
        "watch" => "readEvents",
        "record" => "recordEvents",
        "recording" => "getRecording",
        "loops" => "listLoops",
        "loop-chain" => "getLoopChain",
        "loop-groups" => "listLoopGroups",
        "spawns" => "listSpawns",
        "config-status" => "getConfigStatus",
        _ => return camel_case(name),
    };
    known.to_owned()
}

/// `append-delta` as `appendDelta`; `store::get` as `storeGet`.
fn camel_case(name: &str) -> String {
    let mut words = name.split(['-', ':', '_', '.']).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |made, word| made + &capitalised(word))
}

/// `function_result` as `FunctionResult`.
pub(super) fn pascal_case(name: &str) -> String {
    capitalised(&camel_case(name))
}

fn capitalised(word: &str) -> String {
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
        assert_eq!(operation_id("session::append-entry"), "appendEntry");
        assert_eq!(operation_id("session::append-delta"), "appendDelta");
        assert_eq!(operation_id("session::set-active-leaf"), "setActiveLeaf");
        assert_eq!(pascal_case("function_result"), "FunctionResult");
    }
}
