//! Entries are read by key: by ids, by custom type, by the beginning of their ids.
//!
//! An id is one look-up in the log's id tables. The entries of a custom type name each other, and the session's state names the
//! newest, so that the newest of a type, and each one before it, is one look-up too. Other questions read the log in the order
//! that was asked for, a bounded part a call.

use bough_session::{
    Entry, EntryId, Format, Mapped, NewestOf, OpaqueBody, RawJson, Record, SessionId, SessionState,
    StreamTally, entry_to_format, json_bytes, unfinished_json, unfinished_to_format,
};
use bough_store::{Position, Store, StoreExt, StoredRecord};
use serde::{Deserialize, Serialize};

use super::reading::visible_entry;
use crate::api::{
    EntriesRequest, EntriesResponse, EntryItem, EntryOrder, EntryRequest, EntryResponse,
};
use crate::cursor;
use crate::error::ServiceError;
use crate::limits::{
    ENTRIES_IDS_MAX, ENTRIES_LOOKED_AT_MAX, ENTRIES_PAGE_BYTES, ENTRIES_PAGE_BYTES_MAX,
    SCAN_ENTRIES,
};
use crate::scope::Scope;
use crate::service::Service;

pub(crate) async fn entry(
    service: &Service,
    scope: &Scope,
    request: EntryRequest,
) -> Result<Option<EntryResponse>, ServiceError> {
    let runtime = service.runtime();
    let Some(seen) = runtime.visible(scope, &request.session_id).await? else {
        return Ok(None);
    };
    let stored = visible_entry(&*runtime.store, &request.session_id, &request.entry_id).await?;
    Ok(stored.map(|stored| {
        let shape = ItemShape { format: request.format, streams: &[&seen.state.streams] };
        EntryResponse { entry: shape.item(&stored.entry) }
    }))
}

pub(crate) async fn entries(
    service: &Service,
    scope: &Scope,
    request: EntriesRequest,
) -> Result<EntriesResponse, ServiceError> {
    let runtime = service.runtime();
    let state = runtime.need(scope, &request.session_id).await?.state;
    let bytes = request.max_bytes.unwrap_or(ENTRIES_PAGE_BYTES).min(ENTRIES_PAGE_BYTES_MAX);
    let mut reader = KeyReader {
        store: &*runtime.store,
        session: &request.session_id,
        custom_type: request.custom_type.as_deref(),
        id_prefix: request.id_prefix.as_deref(),
        shape: ItemShape { format: request.format, streams: &[&state.streams] },
        limit: service.settings().page(request.limit),
        bytes_left: bytes,
        looked_at: 0,
        found: Vec::new(),
    };
    let start = request.cursor.as_deref().map(cursor::decode::<KeyCursor>).transpose()?;
    let next = match (&request.ids, request.order.unwrap_or_default()) {
        (Some(ids), _) => reader.read_ids(ids, start).await?,
        (None, EntryOrder::Newest) => reader.read_newest(&state, start).await?,
        (None, EntryOrder::Oldest) => reader.read_oldest(start).await?,
    };
    let next_cursor = next.map(|next| cursor::encode(&next)).transpose()?;
    Ok(EntriesResponse { entries: reader.found, next_cursor })
}

/// How entries are shown over HTTP.
#[derive(Clone, Copy)]
pub(crate) struct ItemShape<'a> {
    /// The format of the messages; `None` is the canonical message.
    pub(crate) format: Option<Format>,
    /// Which messages stream, by what was looked at before the entries or after them: those do not say yet why the model stopped.
    /// A message that ends meanwhile is shown as open, so that a caller that waits for its end does not take an early text for the last.
    pub(crate) streams: &'a [&'a StreamTally],
}

impl ItemShape<'_> {
    pub(crate) fn item(self, entry: &Entry) -> EntryItem {
        let mut item = EntryItem {
            entry_id: entry.id.clone(),
            parent_id: entry.parent_id.clone(),
            timestamp: entry.timestamp,
            revision: entry.revision,
            siblings: Vec::new(),
            origin: entry.origin.clone(),
            message: None,
            messages: None,
            custom: entry.to_opaque(),
            losses: Vec::new(),
        };
        if let Some(mapped) = self.mapped(entry) {
            item.losses = mapped.losses;
            match <[RawJson; 1]>::try_from(mapped.messages) {
                Ok([message]) => item.message = Some(message),
                Err(messages) => item.messages = Some(messages),
            }
        }
        item
    }

    fn mapped(self, entry: &Entry) -> Option<Mapped> {
        match (self.format, self.streams.iter().any(|streams| streams.is_open(&entry.id))) {
            (Some(format), true) => unfinished_to_format(entry, format),
            (Some(format), false) => entry_to_format(entry, format),
            (None, is_open) => {
                let message = entry.message()?;
                let json = if is_open {
                    unfinished_json(&message)
                } else {
                    RawJson::of(&*message).ok()?
                };
                Some(Mapped { messages: vec![json], losses: Vec::new() })
            }
        }
    }
}

/// Where the next page begins: at an entry, at an index of the list of ids, or at a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeyCursor {
    Entry(EntryId),
    Index(usize),
    Record(u64),
}

fn wrong_cursor() -> ServiceError {
    ServiceError::InvalidCursor { reason: "the cursor is of another question".to_owned() }
}

struct KeyReader<'a> {
    store: &'a dyn Store,
    session: &'a SessionId,
    custom_type: Option<&'a str>,
    id_prefix: Option<&'a str>,
    shape: ItemShape<'a>,
    limit: usize,
    bytes_left: usize,
    /// Entries or records that this call looked at.
    looked_at: usize,
    found: Vec<EntryItem>,
}

impl KeyReader<'_> {
    async fn read_ids(
        &mut self,
        ids: &[EntryId],
        start: Option<KeyCursor>,
    ) -> Result<Option<KeyCursor>, ServiceError> {
        bough_session::limits::check_at_most("ids", "entries", ids.len(), ENTRIES_IDS_MAX)?;
        let first = match start {
            None => 0,
            Some(KeyCursor::Index(place)) => place,
            Some(_) => return Err(wrong_cursor()),
        };
        for (place, id) in ids.iter().enumerate().skip(first) {
            let Some(entry) = self.newest_revision(id).await? else { continue };
            if !self.take(&entry) {
                return Ok(Some(KeyCursor::Index(place)));
            }
        }
        Ok(None)
    }

    async fn read_newest(
        &mut self,
        state: &SessionState,
        start: Option<KeyCursor>,
    ) -> Result<Option<KeyCursor>, ServiceError> {
        let types = state.custom_types.as_ref();
        let known = self.custom_type.map_or(NewestOf::Unknown, |custom_type| {
            types.map_or(NewestOf::Unknown, |types| types.newest(custom_type))
        });
        match (known, start) {
            (_, Some(KeyCursor::Entry(at))) => self.follow_links(at).await,
            (_, Some(KeyCursor::Record(before))) => self.read_backwards(before).await,
            (_, Some(KeyCursor::Index(_))) => Err(wrong_cursor()),
            (NewestOf::None, None) => Ok(None),
            (NewestOf::Linked(newest), None) => self.follow_links(newest).await,
            (NewestOf::Unknown, None) => self.read_backwards(state.seq.saturating_add(1)).await,
        }
    }

    /// From an entry to the one of its type before it, and so on.
    async fn follow_links(&mut self, mut at: EntryId) -> Result<Option<KeyCursor>, ServiceError> {
        loop {
            if self.is_enough() {
                return Ok(Some(KeyCursor::Entry(at)));
            }
            let Some(entry) = self.newest_revision(&at).await? else { return Ok(None) };
            if !self.take(&entry) {
                return Ok(Some(KeyCursor::Entry(at)));
            }
            match entry.marks.previous {
                Some(previous) => at = previous,
                None => return Ok(None),
            }
        }
    }

    /// The records before one, the newest first.
    async fn read_backwards(&mut self, mut end: u64) -> Result<Option<KeyCursor>, ServiceError> {
        while end > 1 {
            if self.is_enough() {
                return Ok(Some(KeyCursor::Record(end)));
            }
            let begin = end.saturating_sub(SCAN_ENTRIES as u64 + 1);
            let records = self.records_between(begin, end).await?;
            for stored in records.iter().rev() {
                if !self.take_record(stored).await? {
                    return Ok(Some(KeyCursor::Record(stored.seq.saturating_add(1))));
                }
            }
            end = begin.saturating_add(1);
        }
        Ok(None)
    }

    /// The records after number `begin` and before number `end`, in order.
    async fn records_between(
        &self,
        begin: u64,
        end: u64,
    ) -> Result<Vec<StoredRecord>, ServiceError> {
        let (mut after, mut found) = (Position::at(begin), Vec::new());
        loop {
            let page = self.store.records(self.session, after, SCAN_ENTRIES).await?;
            after = page.position_after(after);
            let more = page.more && after.seq.saturating_add(1) < end;
            found.extend(page.records.into_iter().filter(|stored| stored.seq < end));
            if !more {
                return Ok(found);
            }
        }
    }

    async fn read_oldest(
        &mut self,
        start: Option<KeyCursor>,
    ) -> Result<Option<KeyCursor>, ServiceError> {
        let mut after = match start {
            None => Position::default(),
            Some(KeyCursor::Record(seq)) => Position::at(seq),
            Some(_) => return Err(wrong_cursor()),
        };
        loop {
            if self.is_enough() {
                return Ok(Some(KeyCursor::Record(after.seq)));
            }
            let page = self.store.records(self.session, after, SCAN_ENTRIES).await?;
            for stored in &page.records {
                if !self.take_record(stored).await? {
                    return Ok(Some(KeyCursor::Record(stored.seq.saturating_sub(1))));
                }
            }
            if !page.more {
                return Ok(None);
            }
            after = page.position_after(after);
        }
    }

    /// Whether the page is full, or the call has looked at as much as one may.
    fn is_enough(&self) -> bool {
        self.found.len() >= self.limit || self.looked_at >= ENTRIES_LOOKED_AT_MAX
    }

    /// Takes the entry that a record adds, as it is now. Returns `false` if the page is full.
    async fn take_record(&mut self, stored: &StoredRecord) -> Result<bool, ServiceError> {
        self.looked_at += 1;
        let Record::Entry(added) = stored.record.known() else { return Ok(true) };
        if !self.matches(added) {
            return Ok(true);
        }
        let Some(entry) = self.newest_revision(&added.id).await? else { return Ok(true) };
        Ok(self.take(&entry))
    }

    /// Takes an entry, if it is one of those that are asked for. Returns `false` if the page is full.
    fn take(&mut self, entry: &Entry) -> bool {
        self.looked_at += 1;
        if !self.matches(entry) {
            return true;
        }
        let item = self.shape.item(entry);
        let bytes = json_bytes(&item);
        let has_room = self.found.len() < self.limit && bytes <= self.bytes_left;
        if !has_room && !self.found.is_empty() {
            return false;
        }
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        self.found.push(item);
        true
    }

    fn matches(&self, entry: &Entry) -> bool {
        if entry.is_hidden() {
            return false;
        }
        let has_prefix = self.id_prefix.is_none_or(|prefix| entry.id.as_str().starts_with(prefix));
        has_prefix && self.custom_type.is_none_or(|wanted| is_of_type(entry, wanted))
    }

    async fn newest_revision(&self, id: &EntryId) -> Result<Option<Entry>, ServiceError> {
        let stored = self.store.entry(self.session, id).await?;
        Ok(stored.map(|stored| stored.entry))
    }
}

fn is_of_type(entry: &Entry, wanted: &str) -> bool {
    use bough_session::EntryBody::{Custom, Foreign, Message, Opaque};
    match &entry.body {
        Message(_) => false,
        Custom(custom) => custom.custom_type == wanted,
        Opaque(OpaqueBody { custom_type, .. }) => custom_type == wanted,
        Foreign(_) => entry.to_opaque().is_some_and(|found| found.custom_type == wanted),
    }
}
