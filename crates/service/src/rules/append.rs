//! Appends entries: one, or several in one write, also to a session that the write creates.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use bough_session::limits::{
    check_batch_bytes, check_batch_records, check_custom, check_message, check_origin,
};
use bough_session::{
    AgentMessage, CustomPayload, Entry, EntryBody, EntryId, EntryMarks, Format, JsonMap,
    MetaChange, Record, SessionId, SessionState,
};

use super::finish;
use super::given::{DEFAULT_FORMAT, GivenContent, GivenEntry, GivenParent};
use super::lifecycle::first_record;
use super::meta::{merged, meta_record};
use super::repeats::{FirstDrawn, find_first_use};
use crate::api::{
    AppendEntriesRequest, AppendEntriesResponse, AppendEntryRequest, AppendManyRequest,
    AppendManyResponse, AppendRequest, AppendResponse, AppendedEntry, MetaPatch, NewEntry,
};
use crate::error::ServiceError;
use crate::open_session::UncommittedEntry;
use crate::runtime::is_visible;
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::{self, Command, Decision, WriteContext};

pub(crate) async fn append(
    service: &Service,
    scope: &Scope,
    request: AppendRequest,
) -> Result<AppendResponse, ServiceError> {
    if request.entry_id.is_none() {
        find_first_use(service, FirstDrawn::Entry(&request.session_id, 0)).await?;
    }
    let drawn = service.fresh_entry_id()?;
    let given = match (request.message, request.custom) {
        (Some(message), None) => checked_message(message),
        (None, Some(custom)) => checked_custom(custom),
        (Some(_), Some(_)) => {
            Err(ServiceError::invalid("supply exactly one of `message` and `custom`, not both"))
        }
        (None, None) => Err(ServiceError::invalid("supply exactly one of `message` and `custom`")),
    };
    let origin = checked_origin(request.origin);
    let entry = origin.and_then(|origin| {
        let is_chosen = request.entry_id.is_some();
        let id = request.entry_id.unwrap_or(drawn);
        let parent = GivenParent::or_entry_before(request.parent_id);
        let content = GivenContent::Body(given?);
        Ok(vec![GivenEntry { id, is_chosen, parent, origin, digest: None, content }])
    });
    let command = AppendEntries {
        expected_leaf: request.expected_leaf,
        streams: request.stream == Some(true),
        ..AppendEntries::new(service, scope, entry)
    };
    let appended = command.run(service, &request.session_id).await?;
    let [AppendedEntry { entry_id, parent_id, timestamp, .. }] = single(appended)?;
    Ok(AppendResponse { entry_id, parent_id, timestamp })
}

pub(crate) async fn append_many(
    service: &Service,
    scope: &Scope,
    request: AppendManyRequest,
) -> Result<AppendManyResponse, ServiceError> {
    check_batch_records(request.messages.len())?;
    find_first_use(service, FirstDrawn::Entry(&request.session_id, 0)).await?;
    let mut entries = Vec::with_capacity(request.messages.len());
    let mut parent_id = request.parent_id;
    let origin = checked_origin(request.origin);
    for message in request.messages {
        let (id, origin) = (service.fresh_entry_id()?, origin.clone());
        entries.push(origin.and_then(|origin| {
            let content = GivenContent::Body(checked_message(message)?);
            let parent = GivenParent::or_entry_before(parent_id.take());
            Ok(GivenEntry { id, is_chosen: false, parent, origin, digest: None, content })
        }));
    }
    let command = AppendEntries {
        expected_leaf: request.expected_leaf,
        ..AppendEntries::new(service, scope, entries.into_iter().collect())
    };
    let appended = command.run(service, &request.session_id).await?;
    let entry_ids: Vec<EntryId> = appended.into_iter().map(|entry| entry.entry_id).collect();
    let last_entry_id = entry_ids.last().cloned().ok_or(ServiceError::EmptyBatch)?;
    Ok(AppendManyResponse { entry_ids, last_entry_id })
}

pub(crate) async fn append_entry(
    service: &Service,
    scope: &Scope,
    request: AppendEntryRequest,
) -> Result<AppendedEntry, ServiceError> {
    if request.entry_id.is_none() {
        find_first_use(service, FirstDrawn::Entry(&request.session_id, 0)).await?;
    }
    let entry = NewEntry {
        entry_id: request.entry_id,
        parent_id: request.parent_id,
        format: request.format,
        message: request.message,
        custom: request.custom,
        origin: request.origin,
    };
    let given = GivenEntry::read(entry, "", service.fresh_entry_id()?, 1);
    let command = AppendEntries {
        create: creating(scope, request.create, None)?,
        expected_leaf: request.expected_leaf,
        refuses_other_content: true,
        streams: request.stream == Some(true),
        ..AppendEntries::new(service, scope, given.map(|given| vec![given]))
    };
    let appended = command.run(service, &request.session_id).await?;
    let [appended] = single(appended)?;
    Ok(appended)
}

pub(crate) async fn append_entries(
    service: &Service,
    scope: &Scope,
    request: AppendEntriesRequest,
) -> Result<AppendEntriesResponse, ServiceError> {
    let count = request.entries.len();
    check_batch_records(count)?;
    // They are written together, so one of them stands for all.
    let first = request.entries.iter().position(|entry| entry.entry_id.is_none());
    if let Some(first) = first {
        find_first_use(service, FirstDrawn::Entry(&request.session_id, first as u64)).await?;
    }
    let mut entries = Vec::with_capacity(count);
    for (index, entry) in request.entries.into_iter().enumerate() {
        let at = format!("/entries/{index}");
        entries.push(GivenEntry::read(entry, &at, service.fresh_entry_id()?, count));
    }
    let command = AppendEntries {
        create: creating(scope, request.create, request.meta.as_ref())?,
        meta: request.meta,
        expected_leaf: request.expected_leaf,
        refuses_other_content: true,
        is_batch: true,
        ..AppendEntries::new(service, scope, entries.into_iter().collect())
    };
    let entries = command.run(service, &request.session_id).await?;
    Ok(AppendEntriesResponse { entries })
}

/// The first record of the session, if the request may create it.
fn creating(
    scope: &Scope,
    create: Option<bool>,
    meta: Option<&MetaPatch>,
) -> Result<Option<MetaChange>, ServiceError> {
    if create != Some(true) {
        return Ok(None);
    }
    let meta = meta.cloned().unwrap_or_default();
    let metadata = meta.metadata.map(|patch| merged(None, &patch));
    first_record(scope, meta.title, meta.description, metadata).map(Some)
}

fn checked_message(message: std::sync::Arc<AgentMessage>) -> Result<EntryBody, ServiceError> {
    check_message(&message)?;
    Ok(EntryBody::Message(message))
}

fn checked_custom(custom: CustomPayload) -> Result<EntryBody, ServiceError> {
    check_custom(&custom)?;
    Ok(EntryBody::Custom(custom))
}

fn checked_origin(origin: Option<JsonMap>) -> Result<Option<JsonMap>, ServiceError> {
    origin.as_ref().map_or(Ok(()), check_origin)?;
    Ok(origin)
}

/// The one entry of a request that has one.
fn single(appended: Vec<AppendedEntry>) -> Result<[AppendedEntry; 1], ServiceError> {
    appended.try_into().map_err(|_| ServiceError::EmptyBatch)
}

struct AppendEntries {
    scope: Scope,
    /// What to append, or why the request is invalid: a missing session is reported first.
    entries: Result<Vec<GivenEntry>, ServiceError>,
    /// The first record of the session, if the request may create it.
    create: Option<MetaChange>,
    /// What else becomes of the session.
    meta: Option<MetaPatch>,
    expected_leaf: Option<String>,
    /// Whether generated ids come from the key of the request, so that they may exist already.
    is_keyed: bool,
    /// Whether an existing entry with another content is refused. On the bus it is skipped.
    refuses_other_content: bool,
    /// Whether the request has a list of entries.
    is_batch: bool,
    /// Whether the message streams until it is finished.
    streams: bool,
}

/// What a write appends, and the caller's answer.
#[derive(Default)]
struct Outcome {
    records: Vec<Record>,
    appended: Vec<AppendedEntry>,
    bytes: usize,
    /// The newest entry of each custom type that the write adds.
    newest: HashMap<String, EntryId>,
    added: HashSet<EntryId>,
}

impl AppendEntries {
    fn new(
        service: &Service,
        scope: &Scope,
        entries: Result<Vec<GivenEntry>, ServiceError>,
    ) -> Self {
        Self {
            scope: scope.clone(),
            entries,
            create: None,
            meta: None,
            expected_leaf: None,
            is_keyed: service.may_repeat(),
            refuses_other_content: false,
            is_batch: false,
            streams: false,
        }
    }

    /// Appends, and notes whether the request was carried out before.
    async fn run(
        self,
        service: &Service,
        session: &SessionId,
    ) -> Result<Vec<AppendedEntry>, ServiceError> {
        if let (true, Ok([entry])) = (self.streams, self.entries.as_deref()) {
            finish::note_begin(service, session, &entry.id).await?;
        }
        let (appended, is_replay) = writing::run(service, session, self).await?;
        if is_replay {
            service.note_replay();
        }
        Ok(appended)
    }

    /// The session, if it exists; `None` if the write creates it.
    fn session<'a>(
        &self,
        context: &'a WriteContext<'_>,
    ) -> Result<Option<&'a SessionState>, ServiceError> {
        let there = context.state().filter(|state| !state.deleted);
        match (there, &self.create) {
            (Some(state), _) if is_visible(&self.scope, state) => Ok(Some(state)),
            (None, Some(_)) => {
                SessionId::parse(context.session().as_str())?;
                Ok(None)
            }
            // Neither create nor show it. The message does not say why the id cannot be used.
            (Some(_), Some(_)) => Err(ServiceError::Forbidden {
                reason: format!("the session id {} cannot be used", context.session()),
            }),
            (_, None) => Err(ServiceError::not_found(context.session())),
        }
    }

    /// The entries that exist already.
    async fn find_repeated(
        &self,
        context: &WriteContext<'_>,
        entries: &[GivenEntry],
    ) -> Result<Vec<Option<UncommittedEntry>>, ServiceError> {
        let mut found = Vec::with_capacity(entries.len());
        for entry in entries {
            let may_be_there = entry.is_chosen || self.is_keyed;
            let there = if may_be_there { context.find(&entry.id).await? } else { None };
            if let Some(there) = &there
                && self.refuses_other_content
                && there.digest.is_some()
                && (there.digest != entry.digest || entry.parent.is_other(there.parent_id.as_ref()))
            {
                return Err(ServiceError::OtherContent { what: format!("entry {}", entry.id) });
            }
            found.push(there);
        }
        // The entries of one key are in one write: if one of them exists and another does not, the request is another
        // one.
        let drawn = || entries.iter().zip(&found).filter(|(entry, _)| !entry.is_chosen);
        let (is_there, is_missing) =
            (drawn().find(|(_, there)| there.is_some()), drawn().any(|(_, there)| there.is_none()));
        match is_there {
            Some((entry, _)) if is_missing => {
                Err(ServiceError::OtherContent { what: format!("entry {}", entry.id) })
            }
            _ => Ok(found),
        }
    }

    /// The change of the session's own fields, if the request has one.
    fn meta_record(&self, state: &SessionState) -> Result<Option<Record>, ServiceError> {
        let Some(meta) = &self.meta else { return Ok(None) };
        let metadata = match &meta.metadata {
            Some(patch) => self.scope.stamp(Some(merged(state.meta.metadata.as_ref(), patch)))?,
            None => state.meta.metadata.clone(),
        };
        meta_record(state, meta.title.clone(), meta.description.clone(), metadata).map(Some)
    }

    /// Where an entry stands in the request.
    fn place(&self, index: usize) -> String {
        if self.is_batch { format!("/entries/{index}") } else { String::new() }
    }
}

#[async_trait]
impl Command for AppendEntries {
    /// The entries, and whether all of them existed before.
    type Answer = (Vec<AppendedEntry>, bool);

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Self::Answer>, ServiceError> {
        let created = match self.session(context)? {
            Some(_) => None,
            None => self.create.clone(),
        };
        let fresh;
        let entries = self.entries.as_deref().map_err(Clone::clone)?;
        if entries.is_empty() {
            return Err(ServiceError::EmptyBatch);
        }
        let found = self.find_repeated(context, entries).await?;
        let state = match &created {
            None => {
                self.session(context)?.ok_or_else(|| ServiceError::not_found(context.session()))?
            }
            Some(first) => {
                let mut state = SessionState::new(context.session().clone());
                state.apply(&Record::Meta(first.clone()), 1, context.now_ms);
                fresh = state;
                &fresh
            }
        };
        let mut outcome = Outcome::default();
        if found.iter().all(Option::is_some) {
            for (entry, there) in entries.iter().zip(found) {
                outcome.appended.extend(there.map(|there| appended(&entry.id, there)));
            }
            return Ok(Decision::Nothing((outcome.appended, true)));
        }
        check_leaf(state, self.expected_leaf.as_deref())?;
        match &created {
            Some(first) => outcome.records.push(Record::Meta(first.clone())),
            None => outcome.records.extend(self.meta_record(state)?),
        }
        let mut last = state.leaf.clone();
        for (index, (entry, there)) in entries.iter().zip(found).enumerate() {
            match there {
                Some(there) => outcome.appended.push(appended(&entry.id, there)),
                None => {
                    let parent_id = outcome.parent_of(context, entry, last).await?;
                    let body = entry.body(&self.place(index), || default_format(state))?;
                    let entry = outcome.entry(entry, body, parent_id, state, context.now_ms)?;
                    outcome.add(entry, state, self.streams)?;
                }
            }
            last = Some(entry.id.clone());
        }
        check_batch_bytes(outcome.bytes)?;
        let answer = (outcome.appended, false);
        Ok(match created {
            Some(_) => Decision::Create(outcome.records, answer),
            None => Decision::Append(outcome.records, answer),
        })
    }
}

impl Outcome {
    /// The requested parent, or else the entry before.
    async fn parent_of(
        &self,
        context: &WriteContext<'_>,
        entry: &GivenEntry,
        last: Option<EntryId>,
    ) -> Result<Option<EntryId>, ServiceError> {
        let parent = match &entry.parent {
            GivenParent::EntryBefore => return Ok(last),
            GivenParent::Nothing => return Ok(None),
            GivenParent::Entry(parent) => parent,
        };
        let is_known = Some(parent) == last.as_ref() || self.added.contains(parent);
        if !is_known && context.find_visible(parent).await?.is_none() {
            return Err(ServiceError::ParentNotFound {
                session: context.session().to_string(),
                parent: parent.to_string(),
            });
        }
        Ok(Some(parent.clone()))
    }

    /// The entry that a request wants.
    fn entry(
        &mut self,
        given: &GivenEntry,
        body: EntryBody,
        parent_id: Option<EntryId>,
        state: &SessionState,
        now_ms: i64,
    ) -> Result<Entry, ServiceError> {
        let id =
            if given.is_chosen { EntryId::parse(given.id.as_str())? } else { given.id.clone() };
        let previous = self.previous(&body, &id, state);
        Ok(Entry {
            id,
            parent_id,
            timestamp: now_ms,
            revision: 0,
            origin: given.origin.clone(),
            marks: EntryMarks { digest: given.digest, previous },
            body,
        })
    }

    fn add(
        &mut self,
        entry: Entry,
        state: &SessionState,
        streams: bool,
    ) -> Result<(), ServiceError> {
        let id = entry.id.clone();
        if !self.added.insert(id.clone()) {
            let reason = format!("entry_id {id} is in the batch more than once");
            return Err(ServiceError::invalid(reason));
        }
        self.bytes = self.bytes.saturating_add(entry.bytes());
        self.appended.push(AppendedEntry {
            entry_id: id,
            parent_id: entry.parent_id.clone(),
            timestamp: entry.timestamp,
            revision: 0,
        });
        if streams {
            self.records.extend(finish::begin(state, entry)?);
        } else {
            self.records.push(Record::Entry(entry));
        }
        Ok(())
    }

    /// The entry of the same custom type before this one.
    fn previous(
        &mut self,
        body: &EntryBody,
        id: &EntryId,
        state: &SessionState,
    ) -> Option<EntryId> {
        let custom_type = body.own_custom_type()?;
        let in_batch = self.newest.insert(custom_type.to_owned(), id.clone());
        let stored = || state.custom_types.as_ref()?.newest_entry(custom_type).cloned();
        in_batch.or_else(stored)
    }
}

fn appended(id: &EntryId, there: UncommittedEntry) -> AppendedEntry {
    AppendedEntry {
        entry_id: id.clone(),
        parent_id: there.parent_id,
        timestamp: there.timestamp,
        revision: there.revision,
    }
}

/// The format of messages that name none. A word that is no format is refused: the message would be read as something else.
fn default_format(state: &SessionState) -> Result<Format, ServiceError> {
    let named = state.meta.metadata.as_ref().and_then(|metadata| metadata.get(DEFAULT_FORMAT));
    let Some(named) = named else { return Ok(Format::Bough) };
    named.as_str().and_then(Format::named).ok_or_else(|| {
        let known = Format::ALL.map(|format| format!("`{format}`")).join(", ");
        ServiceError::invalid(format!(
            "the session's metadata has {named} as `{DEFAULT_FORMAT}`, which must be one of {known}; a message that names its own `format` can be appended"
        ))
    })
}

/// Fails if the active leaf is not the one that the caller expects. Labels do not count.
pub(crate) fn check_leaf(state: &SessionState, expected: Option<&str>) -> Result<(), ServiceError> {
    match expected {
        Some(expected) if !state.is_leaf(expected) => Err(ServiceError::LeafConflict {
            session: state.meta.session_id.to_string(),
            expected: expected.to_owned(),
            actual: state.leaf_without_labels().map_or("", EntryId::as_str).to_owned(),
        }),
        _ => Ok(()),
    }
}
