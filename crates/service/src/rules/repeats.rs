//! Requests that make a session and are made again.
//!
//! With an `Idempotency-Key` the id of the session comes from the key. The first record of the session keeps a digest of the
//! request, so that the same request is told from another one with the same key: after changes of the session, after a restart,
//! and in a copy. A key is good for as long as the session is there.

use bough_session::{Record, RequestDigest, SessionId};
use bough_store::{Position, StoreExt};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::ServiceError;
use crate::service::Service;

/// What a request that may be made again says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepeatCheck {
    pub(crate) digest: RequestDigest,
}

impl RepeatCheck {
    /// The check for a request; `None` when its caller gave no key.
    pub(crate) fn of<T: Serialize>(service: &Service, function: &str, request: &T) -> Option<Self> {
        service.may_repeat().then(|| Self { digest: digest(function, request) })
    }

    /// Notes that the session was made by the same request, or refuses one that another request made.
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

/// The digest of what a request says. A member that is `null` says nothing.
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
