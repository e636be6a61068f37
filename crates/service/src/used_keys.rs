//! What idempotency keys were used for: one rule for every call with a key.
//!
//! A key of a tenant is for one request. Before a call with a key is carried out, a document in the [`SharedState`] notes
//! a digest of its request; another request with the same key is refused from then on. What a call made in a session's log
//! is found there again ([`Repeat::ByKey`]). For the others ([`Repeat::Kept`]) the document gets the answer too, durable
//! before the caller has it, and a repeated call is answered with it.
//!
//! After a crash between the write and its answer, the document has no answer, and the repeated call is carried out again.
//! Most calls do not change anything then; the others find out that it was their own first try that they meet
//! ([`Service::began_before`]).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bough_session::{RequestDigest, hex};
use bough_store::shared_state::{Change, Expected, Persistence, SharedState, SharedStateError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tokio::sync::OwnedMutexGuard;

use crate::answer::{Answer, Repeat, Tag};
use crate::error::ServiceError;
use crate::function::Function;
use crate::limits::{KEPT_ANSWER_BYTES_MAX, KEY_ATTEMPTS_MAX, KEYS_PER_SWEEP};
use crate::lock::lock;
use crate::request::Request;
use crate::rules::given::hash_without_space;
use crate::scope::Scope;
use crate::service::Service;
use crate::terms::is_key_good;
use crate::writing::run_to_completion;

/// What the keys of the documents begin with.
const PREFIX: &str = "key.";
/// Conditions of a request: they say when it may be carried out, not what it does.
const CONDITIONS: [&str; 3] = ["expected_leaf", "expected_revision", "expected_version"];

/// The keys that were used, by documents that processes share.
#[derive(Debug)]
pub(crate) struct UsedKeys {
    shared: Arc<dyn SharedState>,
    /// A lock for each key that a call of this process has, so that a repeated call waits for the first one.
    running: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// The document after which the next sweep begins.
    swept_to: Mutex<Option<String>>,
}

/// What a key was used for.
#[derive(Debug, Serialize, Deserialize)]
struct KeyUse {
    /// When it was used first.
    at_ms: i64,
    request: RequestDigest,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    answer: Option<KeptAnswer>,
}

/// The answer to a call.
#[derive(Debug, Serialize, Deserialize)]
struct KeptAnswer {
    /// As JSON text, because a document does not keep the order of members.
    body: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    tag: Option<Tag>,
}

/// What is known of a call before it is carried out.
enum Before {
    /// The key is new, and is noted now.
    Nothing,
    /// The same call began, and has no answer.
    Begun { at_ms: i64 },
    /// The same call was answered.
    Answered(KeptAnswer),
}

/// Carries out a call with a key, unless the same call was carried out before. It ends even if its caller does not wait.
pub(crate) async fn answer_once(
    service: &Service,
    scope: &Scope,
    function: Function,
    request: Request,
    key: [u8; 32],
) -> Result<Answer, ServiceError> {
    scope.may_call(&function)?;
    let Some(keys) = service.used_keys_slot().get().cloned() else {
        return Err(ServiceError::invalid("keys are not kept here; send the call without one"));
    };
    let call = KeyedCall { keys, service: service.clone(), scope: scope.clone(), function };
    run_to_completion(call.answer(request, format!("{PREFIX}{}", hex(&key)))).await
}

struct KeyedCall {
    keys: Arc<UsedKeys>,
    service: Service,
    scope: Scope,
    function: Function,
}

impl KeyedCall {
    async fn answer(self, request: Request, key: String) -> Result<Answer, ServiceError> {
        let _running = self.keys.clone().wait_for(&key).await;
        let digest = digest(self.function.id, &request);
        let (began_at, is_first) = match self.begin(&key, digest).await? {
            Before::Answered(kept) => return kept.into_answer(),
            Before::Begun { at_ms } => (at_ms, false),
            Before::Nothing => (self.service.now_ms(), true),
        };
        if !is_first {
            self.service.note_began_before();
        }
        let answer = self.function.run(&self.service, &self.scope, request).await;
        let is_refused = match &answer {
            Ok(answer) => answer.stale.is_some(),
            // After a failure of the store it may have been carried out.
            Err(error) => error.http_status() < 500,
        };
        if is_refused && is_first {
            self.keys.forget(&key).await;
        }
        let answer = answer?;
        if !is_refused && self.function.repeat == Repeat::Kept {
            let kept = KeptAnswer::of(&answer)?;
            if let Some(kept) = kept {
                let used = KeyUse { at_ms: began_at, request: digest, answer: Some(kept) };
                let put = self.keys.put(&key, Expected::Any, &used, Persistence::Synced);
                put.await.map_err(not_noted)?;
            }
        }
        Ok(answer)
    }

    /// Notes what the key is used for, and finds out whether it was used before.
    async fn begin(&self, key: &str, request: RequestDigest) -> Result<Before, ServiceError> {
        // What is in a log is found there, also when a power cut undid the note.
        let persistence = match self.function.repeat {
            Repeat::Kept => Persistence::Synced,
            _ => Persistence::ProcessExit,
        };
        let (now_ms, lifetime) = (self.service.now_ms(), self.service.settings().idempotency_keys);
        for _ in 0..KEY_ATTEMPTS_MAX {
            let found = self.keys.shared.get(key).await.map_err(not_noted)?;
            let expected = match found {
                None => Expected::Absent,
                Some(document) => match serde_json::from_value::<KeyUse>(document.value) {
                    Ok(used) if is_key_good(used.at_ms, now_ms, lifetime) => {
                        return used.before(request);
                    }
                    // Its time has ended.
                    _ => Expected::Version(document.version),
                },
            };
            let used = KeyUse { at_ms: now_ms, request, answer: None };
            match self.keys.put(key, expected, &used, persistence).await {
                Ok(()) => return Ok(Before::Nothing),
                Err(SharedStateError::Conflict { .. }) => {}
                Err(error) => return Err(not_noted(error)),
            }
        }
        Err(ServiceError::storage("others use the same idempotency key all the time"))
    }
}

impl KeyUse {
    fn before(self, request: RequestDigest) -> Result<Before, ServiceError> {
        if self.request != request {
            return Err(ServiceError::KeyReused);
        }
        Ok(match self.answer {
            Some(kept) => Before::Answered(kept),
            None => Before::Begun { at_ms: self.at_ms },
        })
    }
}

impl KeptAnswer {
    /// `None` if the answer is too large to be kept.
    fn of(answer: &Answer) -> Result<Option<Self>, ServiceError> {
        let body = String::from_utf8(answer.to_json()?).map_err(|error| unreadable(&error))?;
        let kept = Self { body, tag: answer.tag.clone() };
        Ok((kept.body.len() <= KEPT_ANSWER_BYTES_MAX).then_some(kept))
    }

    fn into_answer(self) -> Result<Answer, ServiceError> {
        let body = RawValue::from_string(self.body).map_err(|error| unreadable(&error))?;
        Ok(Answer::of_earlier_call(body, self.tag))
    }
}

impl UsedKeys {
    fn new(shared: Arc<dyn SharedState>) -> Self {
        Self { shared, running: Mutex::default(), swept_to: Mutex::default() }
    }

    async fn put(
        &self,
        key: &str,
        expected: Expected,
        used: &KeyUse,
        persistence: Persistence,
    ) -> Result<(), SharedStateError> {
        let value = serde_json::to_value(used).ok();
        let change = Change { key: key.to_owned(), expected, value };
        self.shared.apply(vec![change], persistence).await.map(drop)
    }

    /// Makes the key a new one again, because its call was refused. If that fails, it stays the key of this call.
    async fn forget(&self, key: &str) {
        let change = Change { key: key.to_owned(), expected: Expected::Any, value: None };
        drop(self.shared.apply(vec![change], Persistence::ProcessExit).await);
    }

    /// Waits until no other call of this process has the key.
    async fn wait_for(self: Arc<Self>, key: &str) -> Running {
        let one = lock(&self.running).entry(key.to_owned()).or_default().clone();
        let held = one.lock_owned().await;
        Running { keys: self, key: key.to_owned(), held: Some(held) }
    }
}

/// The one call of this process that has a key.
struct Running {
    keys: Arc<UsedKeys>,
    key: String,
    /// `None` only while this is dropped.
    held: Option<OwnedMutexGuard<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.held.take());
        let mut running = lock(&self.keys.running);
        if running.get(&self.key).is_some_and(|one| Arc::strong_count(one) == 1) {
            running.remove(&self.key);
        }
    }
}

impl Service {
    /// Says where it is noted what idempotency keys were used for; once. Without it, a call with a key of a tenant is
    /// refused.
    pub fn set_used_keys(&self, shared: Arc<dyn SharedState>) -> bool {
        self.used_keys_slot().set(Arc::new(UsedKeys::new(shared))).is_ok()
    }

    /// Removes the notes of keys whose time has ended, of as many as one sweep reads; how many it removed. The next sweep
    /// goes on from there.
    pub async fn forget_ended_keys(&self) -> Result<usize, ServiceError> {
        let Some(keys) = self.used_keys_slot().get() else { return Ok(0) };
        let after = lock(&keys.swept_to).take();
        let page = keys.shared.list(PREFIX, after.as_deref(), KEYS_PER_SWEEP).await;
        let page = page.map_err(not_noted)?;
        if let (KEYS_PER_SWEEP, Some((last, _))) = (page.len(), page.last()) {
            *lock(&keys.swept_to) = Some(last.clone());
        }
        let (now_ms, lifetime) = (self.now_ms(), self.settings().idempotency_keys);
        let ended = page.into_iter().filter_map(|(key, document)| {
            let used = serde_json::from_value::<KeyUse>(document.value).ok()?;
            let expected = Expected::Version(document.version);
            let has_ended = !is_key_good(used.at_ms, now_ms, lifetime);
            has_ended.then_some(Change { key, expected, value: None })
        });
        let ended: Vec<Change> = ended.collect();
        let count = ended.len();
        match keys.shared.apply(ended, Persistence::ProcessExit).await {
            Ok(_) => Ok(count),
            // One of them is in use again; a later sweep removes the others.
            Err(SharedStateError::Conflict { .. }) => Ok(0),
            Err(error) => Err(not_noted(error)),
        }
    }
}

/// The digest of what a call does. Members that are `null`, the order of members and the space between JSON tokens do not
/// count, because a repeated request may be printed anew.
fn digest(function: &str, request: &Request) -> RequestDigest {
    let mut hash = Sha256::new();
    hash.update(function.len().to_be_bytes());
    hash.update(function);
    for (name, json) in request.members() {
        if CONDITIONS.contains(&name) {
            continue;
        }
        hash.update(name.len().to_be_bytes());
        hash.update(name);
        hash_without_space(&mut hash, &json);
        // No JSON has this byte, so it ends the member.
        hash.update([0]);
    }
    RequestDigest(hash.finalize().into())
}

fn not_noted(error: SharedStateError) -> ServiceError {
    ServiceError::storage(format!("the idempotency key cannot be noted: {error}"))
}

fn unreadable(error: &dyn std::fmt::Display) -> ServiceError {
    ServiceError::storage(format!("the answer of an idempotency key cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_digest_is_of_what_a_call_does() {
        let of = |text: &str| digest("f", &Request::from_body(text.as_bytes()).unwrap());
        let one = of(r#"{"a": [1, 2], "b": "x"}"#);
        for same in [
            r#"{"b":"x","a":[1,2]}"#,
            r#"{"a":[1,2],"b":"x","c":null}"#,
            r#"{"a":[1,2],"b":"x","expected_revision":3}"#,
        ] {
            assert_eq!(of(same), one, "{same}");
        }
        for other in [r#"{"a":[1,2]}"#, r#"{"a":[1,2],"b":"y"}"#, r#"{"a":[12],"b":"x"}"#] {
            assert_ne!(of(other), one, "{other}");
        }
        let value = Request::from(json!({"a": [1, 2], "b": "x"}));
        assert_eq!(digest("f", &value), one);
        assert_ne!(digest("g", &value), one);
    }

    #[test]
    fn what_is_kept_can_be_answered_again() {
        for function in crate::table::functions().iter().filter(|one| one.repeat == Repeat::Kept) {
            assert!(!function.makes_session, "{}: the answer names no session", function.id);
        }
    }
}
