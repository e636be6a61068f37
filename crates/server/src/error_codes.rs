//! The error codes of requests: what each means, and what the caller can do.
//!
//! `/docs` has a page for each of them, and the `type` of a problem is the path of that page.

use http::StatusCode;
use serde_json::{Value, json};

/// A code that requests fail with.
#[derive(Debug)]
pub struct ErrorCode {
    /// The code, such as `session/not_found`.
    pub code: &'static str,
    /// The statuses that it comes with over HTTP.
    pub statuses: &'static [u16],
    /// What it means.
    pub meaning: &'static str,
    /// What the caller can do; empty if the meaning includes it.
    pub action: &'static str,
}

impl ErrorCode {
    /// What it means, and what the caller can do.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{} {}", self.meaning, self.action).trim_end().to_owned()
    }

    /// A problem with this code.
    pub(crate) fn example(&self) -> Value {
        let status = self.statuses.first().and_then(|status| StatusCode::from_u16(*status).ok());
        let hint = if self.action.is_empty() { "What to do next." } else { self.action };
        json!({
            "type": page_of(self.code),
            "title": status.and_then(|status| status.canonical_reason()),
            "status": status.map(|status| status.as_u16()),
            "code": self.code,
            "detail": self.meaning,
            "hint": hint,
        })
    }
}

/// The page that describes a code.
pub(crate) fn page_of(code: &str) -> String {
    format!("/docs/errors/{code}")
}

/// The entry of a code.
pub(crate) fn error_code(code: &str) -> Option<&'static ErrorCode> {
    all().find(|known| known.code == code)
}

/// Every code.
pub(crate) fn all() -> impl Iterator<Item = &'static ErrorCode> {
    FUNCTION_ERRORS.iter().chain(HTTP_ERRORS)
}

/// A row for each code: its statuses, what it means, and what the caller can do.
macro_rules! codes {
    ($($code:literal $statuses:tt $meaning:literal $($action:literal)?;)*) => {
        &[$(ErrorCode {
            code: $code,
            statuses: &$statuses,
            meaning: $meaning,
            action: concat!($($action)?),
        }),*]
    };
}

/// The codes of functions, on the bus and over HTTP.
pub const FUNCTION_ERRORS: &[ErrorCode] = codes! {
    "session/not_found" [404] "The session does not exist, or the caller may not see it.";
    "session/entry_not_found" [404] "The session has no such entry.";
    "session/parent_not_found" [422] "The session has no entry with that `parent_id`.";
    "session/invalid_entry_kind" [422] "The function applies to messages, and the entry is a custom one.";
    "session/details_not_supported" [422] "User and assistant messages have no `details`.";
    "session/empty_batch" [422] "The batch holds no message.";
    "session/invalid_cursor" [400] "The cursor is of another list or other filters." "Start again without one.";
    "session/invalid_request" [400] "A field is missing or makes no sense.";
    "session/malformed_request" [400] "The request does not fit the function's schema.";
    "session/too_large" [413] "Something in the request is larger than its limit." "Send less at once.";
    "session/context_too_large" [413] "The context is larger than one answer may be."
        "Pass `max_tokens`, compact the session, or read it in pages with `GET /v1/sessions/{session_id}/messages`.";
    "session/leaf_conflict" [409, 412] "Something was appended since the caller read the leaf."
        "Read what came, then append with the new leaf.";
    "session/loop_not_found" [404] "The session has no such loop.";
    "session/recording_gap" [409]
        "Lines between the last one that came and this one are missing, or the server was restarted and these belong to a loop that began before."
        "Send them; after a restart, those after the `resume_after` of the last answer, or all of them with `after` 0.";
    "session/recording_not_open" [404] "No recording of this name is open: it has ended, or the server was restarted since."
        "Send the events after the `resume_after` of the last answer again, or all of them with `after` 0; none is stored twice.";
    "session/version_conflict" [409, 412] "The session was changed since the caller read it." "Read it, then change it.";
    "session/document_conflict" [409, 412] "The document has another version than the one that was expected, or there is none."
        "Read it, then repeat the change on what is there.";
    "session/document_not_found" [404] "The scope has no document under this key." "List the documents of the scope.";
    "session/other_content" [422] "The key or the entry id was used for other content." "Use a fresh one.";
    "session/revision_conflict" [409, 412] "The message is at another revision." "Read it, then change what is there.";
    "session/not_streaming" [409] "The message was finished or aborted, or was not begun with `stream`." "Its revision is in `data`.";
    "session/other_incarnation" [409, 412] "The session was deleted and created again." "Read it again.";
    "session/forbidden" [403] "The token does not allow this.";
    "session/function_not_found" [404] "There is no such function.";
    "session/not_in_trash" [404] "The session was never deleted, or its retention has ended.";
    "session/already_exists" [409] "The session exists already.";
    "session/locked" [423] "Another process writes this session." "Send the call to that process, or wait until it has ended.";
    "session/busy" [503] "Other writers kept changing the session while this call tried to." "Try again.";
    "session/unsupported" [501] "The adapter cannot do this.";
    "session/not_authoritative" [503] "This instance stores through another; ask the main one.";
    "session/storage" [500] "The disk or the main instance failed." "The server's log says more.";
};

/// The codes that only HTTP has.
const HTTP_ERRORS: &[ErrorCode] = codes! {
    "guard/host_not_allowed" [400, 421] "The `Host` header is missing, or names a host that this server does not answer to."
        "Use the address that the server prints, or add the name to `allow.hosts`.";
    "guard/origin_not_allowed" [403] "Pages of that origin may not call this server." "Add the origin to `allow.origins`.";
    "guard/origin_needed" [403] "A cookie lets the request in, the request changes something, and it has no `Origin` header."
        "Send the header, as browsers do, or a bearer token.";
    "guard/token_needed" [401] "This server asks for a token."
        "Make one with `bough token create` and send it as `authorization: Bearer <token>`.";
    "guard/token_not_valid" [401] "The token is not one of this server's, was revoked, or has ended."
        "Make another one with `bough token create`.";
    "guard/ticket_not_valid" [401] "The ticket was used before, or has ended."
        "Get another one with `POST /v1/tickets`; each opens one stream.";
    "guard/proxy_not_trusted" [403] "A proxy passed the request on to a server without tokens."
        "Make a token with `bough token create`. If whoever reaches the proxy may do everything, add its address to `allow.proxies`.";
    "http/bad_request" [400] "The request cannot be read." "Correct the part that `detail` names.";
    "http/unknown_member" [400] "The request has a field that the operation does not know, in its body or its query. Nothing was done."
        "Correct its name; `detail` says which known name is nearest. Or leave it out.";
    "http/not_found" [404] "There is nothing at this path." "See `/docs` for the paths.";
    "http/method_not_allowed" [405] "The path does not take this method." "Use one of those in the header `Allow`.";
    "http/not_json" [415] "The content type of the body is not JSON."
        "Send `content-type: application/json`, or `application/x-ndjson` where lines are taken.";
    "http/not_ndjson" [415] "The content type of the body is not lines of JSON."
        "Send `content-type: application/x-ndjson`, and one object a line.";
    "http/too_large" [413] "The body is larger than the server takes." "Send less at once, or raise `limits.body_bytes`.";
    "http/head_too_large" [431] "The address and the headers of the request are larger than the server takes."
        "Shorten the address, or send the request in the body of `POST /v1/call/{function_id}`.";
    "http/timeout" [408, 503] "The request took too long. It may have been done."
        "Repeat it with the same `Idempotency-Key` or `entry_id`, so that it is not done twice.";
    "http/too_busy" [503] "The server has as many requests or streams as it takes." "Try again after the time in the header `Retry-After`.";
    "http/upgrade_required" [426] "The bus speaks WebSocket." "Connect with a WebSocket client.";
    "http/cannot_verify" [409] "The server's store keeps no files here that could be verified."
        "Verify where the sessions are: on the main instance, or with the native adapter.";
    "http/internal" [500] "The server failed while it worked on the request."
        "Repeat the request. If it fails again, look into the server's log for the `x-request-id` of the answer.";
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Refusal;

    #[test]
    fn every_refusal_of_the_guard_is_described() {
        for refusal in Refusal::ALL {
            let known = error_code(refusal.code()).unwrap_or_else(|| panic!("{}", refusal.code()));
            assert!(known.statuses.contains(&refusal.status()), "{}", refusal.code());
        }
    }

    #[test]
    fn every_code_is_described_once() {
        let mut codes: Vec<&str> = all().map(|known| known.code).collect();
        codes.sort_unstable();
        let count = codes.len();
        codes.dedup();
        assert_eq!(codes.len(), count);
    }
}
