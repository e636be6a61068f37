//! Which events a subscriber wants: parsed and refused when it registers, never later.

use bough_session::{JsonMap, Role, SessionId, metadata_matches};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::event_table::{EventKind, names};
use crate::error::ServiceError;

/// Which events a subscriber wants. Everything that is given must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct EventFilter {
    /// These types; sorted, without doubles.
    pub kinds: Vec<EventKind>,
    /// This session only.
    pub session_id: Option<SessionId>,
    /// Messages of these roles only (custom entries have none).
    pub roles: Option<Vec<Role>>,
    /// Sessions whose metadata have these pairs only.
    pub metadata: JsonMap,
}

/// A filter that was refused, in the words that callers of session-manager know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {kind} config: {detail}")]
pub struct FilterError {
    kind: EventKind,
    detail: String,
}

impl EventFilter {
    /// The six public types, of every session.
    #[must_use]
    pub fn everything() -> Self {
        Self::of(EventKind::PUBLIC)
    }

    /// These types, of every session.
    pub fn of(kinds: impl IntoIterator<Item = EventKind>) -> Self {
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_unstable();
        kinds.dedup();
        Self { kinds, session_id: None, roles: None, metadata: JsonMap::new() }
    }

    /// Only of this session.
    #[must_use]
    pub fn in_session(mut self, session_id: SessionId) -> Self {
        self.session_id = Some(session_id);
        self
    }

    /// Only messages of these roles.
    #[must_use]
    pub fn with_roles(mut self, roles: impl IntoIterator<Item = Role>) -> Self {
        self.roles = Some(roles.into_iter().collect());
        self
    }

    /// Only sessions with these metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: JsonMap) -> Self {
        self.metadata = metadata;
        self
    }

    /// The filter that a binding to one type of event configures. `null` is the empty configuration; a key that the type
    /// does not know, or a value of the wrong type, is refused.
    pub fn parse(kind: EventKind, config: &Value) -> Result<Self, FilterError> {
        let refuse = |detail: String| FilterError { kind, detail };
        let parsed = match kind {
            EventKind::Created => read::<CreatedConfig>(config).map(Into::into),
            EventKind::MessageAdded | EventKind::MessageUpdated => read::<MessageConfig>(config),
            _ => read::<SessionConfig>(config).map(Into::into),
        };
        let config: MessageConfig = parsed.map_err(refuse)?;
        Ok(Self {
            kinds: vec![kind],
            session_id: config.session_id,
            roles: config.roles,
            metadata: config.metadata.unwrap_or_default(),
        })
    }

    /// Refuses a filter that nothing passes, or that says what none of its types knows.
    pub(crate) fn check(&self) -> Result<(), ServiceError> {
        if self.kinds.is_empty() {
            let reason = "the filter names no type of event, so no event would pass it";
            return Err(ServiceError::invalid(reason));
        }
        if self.roles.is_some() && !self.kinds.iter().any(|kind| kind.is_message()) {
            let kinds = names(&self.kinds);
            let reason = format!("`roles` filters messages, and {kinds} is not about messages");
            return Err(ServiceError::invalid(reason));
        }
        Ok(())
    }

    /// Whether an event is wanted.
    #[must_use]
    pub fn wants(&self, event: &EventFacts<'_>) -> bool {
        self.kinds.contains(&event.kind)
            && self.session_id.as_ref().is_none_or(|id| id == event.session_id)
            && self.wants_role(event)
            && metadata_matches(&self.metadata, event.metadata)
    }

    fn wants_role(&self, event: &EventFacts<'_>) -> bool {
        match &self.roles {
            Some(roles) if event.kind.is_message() => {
                event.role.is_some_and(|role| roles.contains(&role))
            }
            _ => true,
        }
    }
}

/// The facts of an event that a filter reads.
#[derive(Clone, Copy, Debug)]
pub struct EventFacts<'a> {
    /// The type of the event.
    pub kind: EventKind,
    /// The session that it is about.
    pub session_id: &'a SessionId,
    /// Who speaks, when it is about a message.
    pub role: Option<Role>,
    /// The session's metadata.
    pub metadata: Option<&'a JsonMap>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct MessageConfig {
    session_id: Option<SessionId>,
    roles: Option<Vec<Role>>,
    metadata: Option<JsonMap>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SessionConfig {
    session_id: Option<SessionId>,
    metadata: Option<JsonMap>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CreatedConfig {
    metadata: Option<JsonMap>,
}

impl From<SessionConfig> for MessageConfig {
    fn from(config: SessionConfig) -> Self {
        Self { session_id: config.session_id, roles: None, metadata: config.metadata }
    }
}

impl From<CreatedConfig> for MessageConfig {
    fn from(config: CreatedConfig) -> Self {
        Self { metadata: config.metadata, ..Self::default() }
    }
}

fn read<T: DeserializeOwned + Default>(config: &Value) -> Result<T, String> {
    match config {
        Value::Null => Ok(T::default()),
        Value::Object(_) => T::deserialize(config).map_err(|error| error.to_string()),
        _ => Err("the config must be a JSON object".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(kind: EventKind, config: Value) -> String {
        EventFilter::parse(kind, &config).unwrap_err().to_string()
    }

    #[test]
    fn malformed_filters_are_refused_in_known_words() {
        assert_eq!(
            refusal(EventKind::MessageAdded, json!({"sesion_id": "s"})),
            "invalid session::message-added config: unknown field `sesion_id`, \
             expected one of `session_id`, `roles`, `metadata`"
        );
        assert_eq!(
            refusal(EventKind::Created, json!({"session_id": "s"})),
            "invalid session::created config: unknown field `session_id`, expected `metadata`"
        );
        assert_eq!(
            refusal(EventKind::Deleted, json!({"roles": ["user"]})),
            "invalid session::deleted config: unknown field `roles`, \
             expected `session_id` or `metadata`"
        );
        assert!(refusal(EventKind::MessageUpdated, json!({"roles": ["robot"]})).contains(
            "unknown variant `robot`, expected one of \
             `user`, `assistant`, `function_result`, `custom`"
        ));
        assert!(refusal(EventKind::MetaUpdated, json!([])).contains("must be a JSON object"));
        assert!(refusal(EventKind::MetaUpdated, json!({"metadata": 1})).contains("invalid type"));
    }

    #[test]
    fn null_and_empty_configs_want_everything_of_the_kind() {
        for kind in EventKind::ALL {
            let empty = EventFilter::parse(kind, &json!({})).unwrap();
            assert_eq!(EventFilter::parse(kind, &Value::Null).unwrap(), empty);
            assert_eq!(empty, EventFilter::of([kind]));
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        let nulls = json!({"session_id": null, "roles": null, "metadata": null});
        let filter = EventFilter::parse(EventKind::MessageAdded, &nulls).unwrap();
        assert_eq!(filter, EventFilter::of([EventKind::MessageAdded]));
    }

    #[test]
    fn every_given_filter_must_hold_and_custom_entries_have_no_role() {
        let config = json!({"session_id": "s", "roles": ["custom"], "metadata": {"o": 1}});
        let filter = EventFilter::parse(EventKind::MessageAdded, &config).unwrap();
        let (session, other) = (SessionId::from_stored("s"), SessionId::from_stored("t"));
        let matching = json!({"o": 1, "p": 2});
        let check = |kind, session_id, role, metadata: Option<&Value>, wanted: bool| {
            let facts = EventFacts {
                kind,
                session_id,
                role,
                metadata: metadata.and_then(Value::as_object),
            };
            assert_eq!(filter.wants(&facts), wanted, "{facts:?}");
        };
        let (added, custom) = (EventKind::MessageAdded, Some(Role::Custom));
        check(added, &session, custom, Some(&matching), true);
        check(EventKind::MessageUpdated, &session, custom, Some(&matching), false);
        check(added, &other, custom, Some(&matching), false);
        check(added, &session, Some(Role::User), Some(&matching), false);
        check(added, &session, None, Some(&matching), false);
        check(added, &session, custom, None, false);
    }

    #[test]
    fn an_empty_list_of_roles_wants_no_message() {
        let filter = EventFilter::everything().with_roles([]);
        let session = SessionId::from_stored("s");
        let facts = |kind| EventFacts {
            kind,
            session_id: &session,
            role: Some(Role::User),
            metadata: None,
        };
        assert!(!filter.wants(&facts(EventKind::MessageAdded)));
        assert!(filter.wants(&facts(EventKind::StatusChanged)));
    }
}
