//! Entries are appended.

use std::sync::Arc;

use async_trait::async_trait;
use bough_session::limits::{
    check_batch_bytes, check_batch_records, check_custom, check_message, check_origin,
};
use bough_session::{
    AgentMessage, Entry, EntryBody, EntryId, JsonMap, Record, SessionState, json_bytes,
};

use crate::api::{AppendManyRequest, AppendManyResponse, AppendRequest, AppendResponse};
use crate::error::ServiceError;
use crate::rules::finish;
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::{self, Command, Decision, WriteContext};

pub(crate) async fn append(
    service: &Service,
    scope: &Scope,
    mut request: AppendRequest,
) -> Result<AppendResponse, ServiceError> {
    let session_id = request.session_id.clone();
    let fresh_id = service.fresh_entry_id()?;
    if service.may_repeat() {
        request.entry_id.get_or_insert_with(|| fresh_id.clone());
    }
    if request.stream == Some(true) {
        let entry_id = request.entry_id.get_or_insert_with(|| fresh_id.clone()).clone();
        finish::note_begin(service, &session_id, &entry_id).await?;
    }
    let change = Append { scope: scope.clone(), fresh_id, request };
    writing::run(service, &session_id, change).await
}

pub(crate) async fn append_many(
    service: &Service,
    scope: &Scope,
    request: AppendManyRequest,
) -> Result<AppendManyResponse, ServiceError> {
    check_batch_records(request.messages.len())?;
    let fresh_ids =
        request.messages.iter().map(|_| service.fresh_entry_id()).collect::<Result<_, _>>()?;
    let session_id = request.session_id.clone();
    let may_repeat = service.may_repeat();
    let change = AppendMany { scope: scope.clone(), fresh_ids, may_repeat, request };
    writing::run(service, &session_id, change).await
}

struct Append {
    scope: Scope,
    /// The entry's id, unless the caller chose one. Drawn once, so that trying again appends the same entry.
    fresh_id: EntryId,
    request: AppendRequest,
}

#[async_trait]
impl Command for Append {
    type Answer = AppendResponse;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Self::Answer>, ServiceError> {
        let state = context.visible(&self.scope)?;
        let body = self.body()?;
        let leaf = state.leaf.clone();
        let id = match &self.request.entry_id {
            Some(id) => {
                if let Some(there) = context.find(id).await? {
                    return Ok(Decision::Nothing(AppendResponse {
                        entry_id: id.clone(),
                        parent_id: there.parent_id,
                        timestamp: there.timestamp,
                    }));
                }
                EntryId::parse(id.as_str())?
            }
            None => self.fresh_id.clone(),
        };
        check_leaf(context.visible(&self.scope)?, self.request.expected_leaf.as_deref())?;
        let parent_id = parent_of(context, self.request.parent_id.as_ref(), leaf).await?;
        let answer = AppendResponse {
            entry_id: id.clone(),
            parent_id: parent_id.clone(),
            timestamp: context.now_ms,
        };
        let entry = Entry {
            id,
            parent_id,
            timestamp: context.now_ms,
            revision: 0,
            origin: self.request.origin.clone(),
            body,
        };
        let records = match self.request.stream {
            Some(true) => finish::begin(context.visible(&self.scope)?, entry)?,
            _ => vec![Record::Entry(entry)],
        };
        Ok(Decision::Append(records, answer))
    }
}

impl Append {
    fn body(&self) -> Result<EntryBody, ServiceError> {
        self.request.origin.as_ref().map_or(Ok(()), check_origin)?;
        match (&self.request.message, &self.request.custom) {
            (Some(message), None) => {
                check_message(message)?;
                Ok(EntryBody::Message(message.clone()))
            }
            (None, Some(custom)) => {
                check_custom(custom)?;
                Ok(EntryBody::Custom(custom.clone()))
            }
            (Some(_), Some(_)) => {
                Err(ServiceError::invalid("supply exactly one of `message` and `custom`, not both"))
            }
            (None, None) => {
                Err(ServiceError::invalid("supply exactly one of `message` and `custom`"))
            }
        }
    }
}

struct AppendMany {
    scope: Scope,
    fresh_ids: Vec<EntryId>,
    /// The entries may be there already.
    may_repeat: bool,
    request: AppendManyRequest,
}

impl AppendMany {
    /// Whether the same call was carried out before. Its entries came in one batch: where the first is, all of them are.
    async fn is_done(&self, context: &WriteContext<'_>) -> Result<bool, ServiceError> {
        let (true, Some(first), Some(last)) =
            (self.may_repeat, self.fresh_ids.first(), self.fresh_ids.last())
        else {
            return Ok(false);
        };
        if context.find(first).await?.is_none() {
            return Ok(false);
        }
        if context.find(last).await?.is_none() {
            let reason = "the key of this call was used for a shorter batch; use a fresh one";
            return Err(ServiceError::invalid(reason));
        }
        Ok(true)
    }
}

#[async_trait]
impl Command for AppendMany {
    type Answer = AppendManyResponse;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Self::Answer>, ServiceError> {
        let state = context.visible(&self.scope)?;
        let Some(last_entry_id) = self.fresh_ids.last().cloned() else {
            return Err(ServiceError::EmptyBatch);
        };
        check_messages(&self.request.messages, self.request.origin.as_ref())?;
        let leaf = state.leaf.clone();
        let answer = AppendManyResponse { entry_ids: self.fresh_ids.clone(), last_entry_id };
        if self.is_done(context).await? {
            return Ok(Decision::Nothing(answer));
        }
        check_leaf(context.visible(&self.scope)?, self.request.expected_leaf.as_deref())?;
        let mut parent_id = parent_of(context, self.request.parent_id.as_ref(), leaf).await?;
        let mut records = Vec::with_capacity(self.fresh_ids.len());
        for (id, message) in self.fresh_ids.iter().zip(&self.request.messages) {
            records.push(Record::Entry(Entry {
                id: id.clone(),
                parent_id: parent_id.replace(id.clone()),
                timestamp: context.now_ms,
                revision: 0,
                origin: self.request.origin.clone(),
                body: EntryBody::Message(message.clone()),
            }));
        }
        Ok(Decision::Append(records, answer))
    }
}

fn check_messages(
    messages: &[Arc<AgentMessage>],
    origin: Option<&JsonMap>,
) -> Result<(), ServiceError> {
    origin.map_or(Ok(()), check_origin)?;
    let around = origin.map_or(0, json_bytes);
    let mut bytes = 0_usize;
    for message in messages {
        check_message(message)?;
        bytes = bytes.saturating_add(json_bytes(message)).saturating_add(around);
    }
    Ok(check_batch_bytes(bytes)?)
}

/// Refuses when the active leaf is not the one that the caller looked at.
fn check_leaf(state: &SessionState, expected: Option<&str>) -> Result<(), ServiceError> {
    let actual = state.leaf.as_ref().map_or("", EntryId::as_str);
    match expected {
        Some(expected) if expected != actual => Err(ServiceError::LeafConflict {
            session: state.session_id.to_string(),
            expected: expected.to_owned(),
            actual: actual.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// The parent that was asked for, which must exist, or else the leaf.
async fn parent_of(
    context: &WriteContext<'_>,
    asked: Option<&EntryId>,
    leaf: Option<EntryId>,
) -> Result<Option<EntryId>, ServiceError> {
    let Some(parent) = asked else {
        return Ok(leaf);
    };
    if Some(parent) != leaf.as_ref() && context.find(parent).await?.is_none() {
        return Err(ServiceError::ParentNotFound {
            session: context.session().to_string(),
            parent: parent.to_string(),
        });
    }
    Ok(Some(parent.clone()))
}
