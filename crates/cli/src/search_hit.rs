//! The words about a hit, alike in the output of `bough search` and in the search screen.

use bough_service::api::SearchHit;

use crate::text::age;

/// What the session is called.
pub(crate) fn title(hit: &SearchHit) -> &str {
    match hit.meta.title.is_empty() {
        true => hit.preview.as_deref().unwrap_or("(no title)"),
        false => hit.meta.title.as_str(),
    }
}

/// Who said it, or what it is.
pub(crate) fn who(hit: &SearchHit) -> &str {
    let kind = hit.snippet.as_ref().map_or("session", |snippet| snippet.kind.as_str());
    hit.role.map_or(kind, |role| role.as_str())
}

/// When it was said, and what sets it apart from what the session shows: an old revision, another branch.
pub(crate) fn facts(hit: &SearchHit, now_ms: i64) -> String {
    let when = age(now_ms, hit.timestamp.unwrap_or(hit.meta.updated_at));
    let revision = if hit.revision.is_some() { " · old revision" } else { "" };
    let branch = if hit.on_active_path == Some(false) { " · other branch" } else { "" };
    format!("{when}{revision}{branch}")
}
