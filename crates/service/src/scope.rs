use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::ServiceError;
use crate::function::Function;
use bough_session::{JsonMap, metadata_matches};

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// See sessions and their events.
    Read,
    /// Create, change, delete and bring back sessions.
    Write,
    /// Purge the trash, reload the configuration.
    Admin,
    /// Speak the store protocol, past the rules.
    Bridge,
    /// Read the server's metrics.
    Metrics,
}

/// Who calls, what they may do and which sessions exist for them.
///
/// A session whose metadata does not have every pair of [`Scope::metadata`] does not exist for the caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    who: Arc<str>,
    metadata: Arc<JsonMap>,
    rights: Arc<BTreeSet<Right>>,
    functions: Option<Arc<BTreeSet<String>>>,
}

impl Scope {
    /// A caller who may do everything with every session: the owner of the process.
    #[must_use]
    pub fn owner() -> Self {
        Self::new("owner", Right::ALL)
    }

    /// A caller with these rights on every session.
    pub fn new(who: &str, rights: impl IntoIterator<Item = Right>) -> Self {
        Self {
            who: who.into(),
            metadata: Arc::default(),
            rights: Arc::new(rights.into_iter().collect()),
            functions: None,
        }
    }

    /// Only sessions with these metadata.
    #[must_use]
    pub fn only_sessions_with(mut self, metadata: JsonMap) -> Self {
        self.metadata = Arc::new(metadata);
        self
    }

    /// Only these functions.
    #[must_use]
    pub fn only_functions(mut self, functions: impl IntoIterator<Item = String>) -> Self {
        self.functions = Some(Arc::new(functions.into_iter().collect()));
        self
    }

    /// The caller's name, for logs.
    #[must_use]
    pub fn who(&self) -> &str {
        &self.who
    }

    /// The pairs that a session must have to exist for the caller.
    #[must_use]
    pub fn metadata(&self) -> &JsonMap {
        &self.metadata
    }

    /// Whether every session exists for the caller.
    #[must_use]
    pub fn sees_every_session(&self) -> bool {
        self.metadata.is_empty()
    }

    /// Whether the caller has a right.
    #[must_use]
    pub fn has(&self, right: Right) -> bool {
        self.rights.contains(&right)
    }

    /// Whether a session with these metadata exists for the caller.
    #[must_use]
    pub fn sees(&self, metadata: Option<&JsonMap>) -> bool {
        metadata_matches(&self.metadata, metadata)
    }

    /// Refuses a caller who may not receive events. Over any transport they show what `session::watch` shows, and need
    /// what that needs.
    pub fn may_watch(&self) -> Result<(), ServiceError> {
        self.allow("session::watch", Right::Read)
    }

    /// Refuses a function that the caller may not call, before its request is read.
    pub fn may_call(&self, function: &Function) -> Result<(), ServiceError> {
        self.allow(function.id, function.right)
    }

    /// Refuses a caller who may not read the server's metrics.
    pub fn may_see_metrics(&self) -> Result<(), ServiceError> {
        self.require(Right::Metrics)
    }

    /// Refuses a caller who may not administer the server.
    pub fn may_administer(&self) -> Result<(), ServiceError> {
        self.require(Right::Admin)
    }

    /// Refuses a function that the caller may not call.
    pub(crate) fn allow(&self, function: &str, right: Right) -> Result<(), ServiceError> {
        let listed = self.functions.as_ref().is_none_or(|names| names.contains(function));
        if !listed {
            return Err(forbidden(format!(
                "{function} is not among the functions that this token may call"
            )));
        }
        self.require(right)
    }

    fn require(&self, right: Right) -> Result<(), ServiceError> {
        if self.has(right) {
            return Ok(());
        }
        Err(forbidden(format!("this needs the right `{}`", right.name())))
    }

    /// The metadata that a session gets when this caller writes `wanted`: the scope's own pairs are filled in, and a
    /// pair that contradicts them is refused, so that no caller can move a session out of their own scope or into
    /// another's.
    pub(crate) fn stamp(&self, wanted: Option<JsonMap>) -> Result<Option<JsonMap>, ServiceError> {
        if self.metadata.is_empty() {
            return Ok(wanted);
        }
        let mut stamped = wanted.unwrap_or_default();
        for (key, value) in self.metadata.iter() {
            match stamped.get(key) {
                Some(given) if given != value => {
                    return Err(forbidden(format!("metadata.{key} is fixed by this token")));
                }
                Some(_) => {}
                None => {
                    stamped.insert(key.clone(), value.clone());
                }
            }
        }
        Ok(Some(stamped))
    }
}

impl Right {
    /// Every right.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Admin, Self::Bridge, Self::Metrics];

    /// The name as it is written in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
            Self::Bridge => "bridge",
            Self::Metrics => "metrics",
        }
    }
}

fn forbidden(reason: String) -> ServiceError {
    ServiceError::Forbidden { reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object(value: Value) -> JsonMap {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_scope_stamps_its_pairs_and_refuses_others() {
        let scope =
            Scope::new("u", [Right::Write]).only_sessions_with(object(json!({"owner": "u"})));
        let stamped = scope.stamp(Some(object(json!({"x": 1})))).unwrap().unwrap();
        assert_eq!(Value::Object(stamped), json!({"x": 1, "owner": "u"}));
        assert_eq!(Value::Object(scope.stamp(None).unwrap().unwrap()), json!({"owner": "u"}));
        let refused = scope.stamp(Some(object(json!({"owner": "v"})))).unwrap_err();
        assert_eq!(refused.code(), "session/forbidden");
        assert_eq!(Scope::owner().stamp(None).unwrap(), None);
    }
}
