//! A session's own fields: title, description, metadata, status, task, archive.

use std::fmt;

use bough_session::limits::{check_reason, check_task_name};
use bough_session::{
    Incarnation, JsonMap, MetaChange, Record, SessionId, SessionState, SessionStatus, StatusChange,
    hex,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::lifecycle::check_meta;
use crate::api::{
    ArchiveRequest, ArchiveResponse, PatchRequest, PatchResponse, SetMetaRequest, SetMetaResponse,
    SetStatusRequest, SetStatusResponse, SetTaskRequest, SetTaskResponse,
};
use crate::error::ServiceError;
use crate::feed::SessionCursor;
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::{self, Decision};

pub(crate) async fn set_meta(
    service: &Service,
    scope: &Scope,
    request: SetMetaRequest,
) -> Result<SetMetaResponse, ServiceError> {
    let SetMetaRequest { session_id, title, description, metadata } = request;
    let fields = (title, description, metadata.map(NewMetadata::Whole));
    let meta = change_fields(service, scope, &session_id, fields, None).await?.meta;
    Ok(SetMetaResponse { meta })
}

pub(crate) async fn patch(
    service: &Service,
    scope: &Scope,
    request: PatchRequest,
) -> Result<PatchResponse, ServiceError> {
    let metadata = request.metadata.map(|patch| match patch {
        Some(patch) => NewMetadata::Merged(patch),
        None => NewMetadata::Whole(JsonMap::new()),
    });
    let fields = (request.title, request.description, metadata);
    change_fields(service, scope, &request.session_id, fields, request.expected_version).await
}

/// What becomes of a session's metadata.
enum NewMetadata {
    /// These, in place of what was there.
    Whole(JsonMap),
    /// These, merged into what was there.
    Merged(JsonMap),
}

/// Changes title, description and metadata, as far as they are given.
async fn change_fields(
    service: &Service,
    scope: &Scope,
    session: &SessionId,
    (title, description, metadata): (Option<String>, Option<String>, Option<NewMetadata>),
    expected_version: Option<String>,
) -> Result<PatchResponse, ServiceError> {
    let stamping = scope.clone();
    writing::change(service, scope, session, move |state, now_ms| {
        check_version(state, expected_version.as_deref())?;
        if title.is_none() && description.is_none() && metadata.is_none() {
            return Ok(Decision::Nothing(patched(state)));
        }
        let metadata = match &metadata {
            Some(NewMetadata::Whole(metadata)) => stamping.stamp(Some(metadata.clone()))?,
            Some(NewMetadata::Merged(patch)) => {
                stamping.stamp(Some(merged(state.meta.metadata.as_ref(), patch)))?
            }
            None => state.meta.metadata.clone(),
        };
        let record = meta_record(state, title.clone(), description.clone(), metadata)?;
        let answer = patched(&after(state, &record, now_ms));
        Ok(Decision::Append(vec![record], answer))
    })
    .await
}

pub(crate) async fn set_status(
    service: &Service,
    scope: &Scope,
    request: SetStatusRequest,
) -> Result<SetStatusResponse, ServiceError> {
    let SetStatusRequest { session_id, status, reason } = request;
    let reason = reason.filter(|_| status == SessionStatus::Error);
    writing::change(service, scope, &session_id, move |state, _| {
        let answer = SetStatusResponse { status, previous_status: state.meta.status };
        if status == state.meta.status {
            return Ok(Decision::Nothing(answer));
        }
        reason.as_deref().map_or(Ok(()), check_reason)?;
        let status = Some(StatusChange { status, reason: reason.clone() });
        Ok(meta_change(MetaChange { status, ..MetaChange::default() }, answer))
    })
    .await
}

pub(crate) async fn set_task(
    service: &Service,
    scope: &Scope,
    request: SetTaskRequest,
) -> Result<SetTaskResponse, ServiceError> {
    let task = request.task.filter(|task| !task.is_empty());
    writing::change(service, scope, &request.session_id, move |state, _| {
        let answer = SetTaskResponse { task: task.clone() };
        let current = state.task_name.as_deref().filter(|task| !task.is_empty());
        if current == task.as_deref() {
            return Ok(Decision::Nothing(answer));
        }
        task.as_deref().map_or(Ok(()), check_task_name)?;
        // The empty name takes the name away.
        let task_name = Some(task.clone().unwrap_or_default());
        Ok(meta_change(MetaChange { task_name, ..MetaChange::default() }, answer))
    })
    .await
}

pub(crate) async fn archive(
    service: &Service,
    scope: &Scope,
    request: ArchiveRequest,
) -> Result<ArchiveResponse, ServiceError> {
    set_archived(service, scope, request, true).await
}

pub(crate) async fn unarchive(
    service: &Service,
    scope: &Scope,
    request: ArchiveRequest,
) -> Result<ArchiveResponse, ServiceError> {
    set_archived(service, scope, request, false).await
}

async fn set_archived(
    service: &Service,
    scope: &Scope,
    request: ArchiveRequest,
    archived: bool,
) -> Result<ArchiveResponse, ServiceError> {
    writing::change(service, scope, &request.session_id, move |state, _| {
        let answer = ArchiveResponse { archived, changed: state.archived != archived };
        if !answer.changed {
            return Ok(Decision::Nothing(answer));
        }
        let change = MetaChange { archived: Some(archived), ..MetaChange::default() };
        Ok(meta_change(change, answer))
    })
    .await
}

fn meta_change<A>(change: MetaChange, answer: A) -> Decision<A> {
    Decision::Append(vec![Record::Meta(change)], answer)
}

fn patched(state: &SessionState) -> PatchResponse {
    PatchResponse { meta: state.meta.clone(), version: version(state) }
}

/// The record that changes a session's own fields. It has all of them, not only those that change, because the event
/// has all of them and is made from this record alone.
pub(crate) fn meta_record(
    state: &SessionState,
    title: Option<String>,
    description: Option<String>,
    metadata: Option<JsonMap>,
) -> Result<Record, ServiceError> {
    let change = MetaChange {
        title: Some(title.unwrap_or_else(|| state.meta.title.clone())),
        description: Some(description.unwrap_or_else(|| state.meta.description.clone())),
        metadata,
        ..MetaChange::default()
    };
    check_meta(&change)?;
    Ok(Record::Meta(change))
}

/// Metadata with a patch merged into them (RFC 7396).
pub(crate) fn merged(metadata: Option<&JsonMap>, patch: &JsonMap) -> JsonMap {
    let mut merged = metadata.cloned().unwrap_or_default();
    merge(&mut merged, patch);
    merged
}

fn merge(target: &mut JsonMap, patch: &JsonMap) {
    for (key, value) in patch {
        match value {
            Value::Null => drop(target.remove(key)),
            Value::Object(inner) => {
                let place =
                    target.entry(key.clone()).or_insert_with(|| Value::Object(JsonMap::new()));
                if !place.is_object() {
                    *place = Value::Object(JsonMap::new());
                }
                if let Value::Object(place) = place {
                    merge(place, inner);
                }
            }
            other => drop(target.insert(key.clone(), other.clone())),
        }
    }
}

/// What a session was at one moment. It prints as a text that changes with everything that readers of the session see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionVersion {
    cursor: SessionCursor,
    fields: String,
}

impl SessionVersion {
    /// The incarnation of the session.
    #[must_use]
    pub const fn incarnation(&self) -> Incarnation {
        self.cursor.incarnation
    }

    /// Whether the session's own fields have this version.
    #[must_use]
    pub fn is_of_fields(&self, version: &str) -> bool {
        self.fields == version
    }
}

impl fmt::Display for SessionVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.cursor, self.fields)
    }
}

impl Service {
    /// The present version of a session; `None` if it does not exist for the caller.
    pub async fn session_version(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<Option<SessionVersion>, ServiceError> {
        let seen = self.runtime().visible(scope, session).await?;
        Ok(seen.map(|now| SessionVersion {
            cursor: SessionCursor::at(now.head.incarnation, now.position),
            fields: version(&now.state),
        }))
    }
}

/// The version of a session's own fields. It is a digest, so a session that was changed and changed back has its old
/// version.
pub(crate) fn version(state: &SessionState) -> String {
    let fields = json!([
        state.meta.created_at,
        state.meta.title,
        state.meta.description,
        state.meta.status,
        state.meta.status_reason,
        state.meta.metadata,
        state.archived,
        state.task_name,
    ]);
    let digest: [u8; 32] = Sha256::digest(fields.to_string()).into();
    hex(digest.split_at(8).0)
}

fn check_version(state: &SessionState, expected: Option<&str>) -> Result<(), ServiceError> {
    let actual = version(state);
    match expected {
        Some(expected) if expected != actual => {
            let session = state.meta.session_id.to_string();
            Err(ServiceError::VersionConflict { session, version: actual })
        }
        _ => Ok(()),
    }
}

/// The state after one more record.
pub(crate) fn after(state: &SessionState, record: &Record, at_ms: i64) -> SessionState {
    let mut next = state.clone();
    next.apply(record, state.seq + 1, at_ms);
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 7396, appendix A, that are about objects.
    #[test]
    fn metadata_are_merged_as_the_standard_says() {
        let check = |before: Value, patch: Value, after: Value| {
            let merged = merged(before.as_object(), patch.as_object().unwrap());
            assert_eq!(Value::Object(merged), after);
        };
        check(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}));
        check(json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"}));
        check(json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"}));
        check(json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"}));
        check(
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        );
        check(json!({"a": [1]}), json!({"a": {"b": {"c": null}}}), json!({"a": {"b": {}}}));
        check(json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1}));
    }
}
