//! Requests with a key, which may be repeated.
//!
//! The ids of what such a request makes come from its key. What it made keeps a digest of the request (a session in its
//! first record, an entry with itself), so the same request can be distinguished from another one with the same key:
//! after changes, after a restart, and in a copy. A key is valid for
//! [`Settings::idempotency_keys`](crate::Settings::idempotency_keys) from its first use on, whatever it made; after
//! that it is a new one.

use bough_session::{EntryId, Record, RequestDigest, SessionId};
use bough_store::{Position, StoreExt};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::ServiceError;
use crate::service::Service;
use crate::terms::{is_key_good, key_windows};

/// The first object that a request draws an id for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FirstDrawn<'a> {
    /// A session.
    Session,
    /// An entry of a session, after so many ids that are not used.
    Entry(&'a SessionId, u64),
}

/// Finds out when the key of a call was first used, if it has one that is still valid. Before this, a call must draw no
/// id.
pub(crate) async fn find_first_use(
    service: &Service,
    first: FirstDrawn<'_>,
) -> Result<(), ServiceError> {
    let Some(keyed) = service.keyed() else { return Ok(()) };
    let (now_ms, lifetime) = (service.now_ms(), service.settings().idempotency_keys);
    let store = service.store();
    for window in key_windows(now_ms, lifetime) {
        let made_at = match first {
            FirstDrawn::Session => {
                let id = SessionId::generate(keyed.id(window, 0));
                store.state(&id).await?.map(|found| found.state.meta.created_at)
            }
            FirstDrawn::Entry(session, number) => {
                let id = EntryId::generate(keyed.id(window, number));
                store.entry(session, &id).await?.map(|found| found.entry.timestamp)
            }
        };
        if made_at.is_some_and(|made_at| is_key_good(made_at, now_ms, lifetime)) {
            keyed.set_window(window);
            return Ok(());
        }
    }
    Ok(())
}

/// The content of a request that may be repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepeatCheck {
    pub(crate) digest: RequestDigest,
}

impl RepeatCheck {
    /// The check for a request; `None` when its caller gave no key.
    pub(crate) fn of<T: Serialize>(service: &Service, function: &str, request: &T) -> Option<Self> {
        service.may_repeat().then(|| Self { digest: digest(function, request) })
    }

    /// Notes that the same request made the session, or refuses a session that another request made.
    pub(crate) async fn check(
        self,
        service: &Service,
        session: &SessionId,
    ) -> Result<(), ServiceError> {
        let store = service.runtime().store.clone();
        let page = store.records(session, Position::default(), 1).await?;
        let first = page.records.first().map(|stored| stored.record.known());
        // Stores in session-manager's form keep no digest.
        let made_by = match first {
            Some(Record::Meta(change)) => change.digest,
            _ => None,
        };
        if made_by.is_some_and(|made_by| made_by != self.digest) {
            return Err(ServiceError::OtherContent { what: format!("session {session}") });
        }
        service.note_replay();
        Ok(())
    }
}

/// The digest of a request. A member that is `null` does not count.
fn digest<T: Serialize>(function: &str, request: &T) -> RequestDigest {
    let mut said = serde_json::to_value(request).unwrap_or_default();
    if let Value::Object(members) = &mut said {
        members.retain(|_, value| !value.is_null());
    }
    let mut hash = Sha256::new();
    for part in [function, &said.to_string()] {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    RequestDigest(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_digest_is_of_what_is_said() {
        let one = digest("session::create", &json!({"title": "a", "description": null}));
        assert_eq!(digest("session::create", &json!({"title": "a"})), one);
        assert_ne!(digest("session::fork", &json!({"title": "a"})), one);
        assert_ne!(digest("session::create", &json!({"title": "b"})), one);
    }
}
