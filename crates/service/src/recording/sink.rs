//! Recording into the sessions of a service.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bough_platform::Clock;
use bough_recorder::RecordSink;
use bough_session::{Incarnation, MetaChange, NewRecord, Record, SessionId};
use bough_store::{Position, RecordQuery, Store, StoreError, StoreExt};

use crate::error::{ANOTHER_RECORDER, ServiceError};
use crate::limits::RECORDED_SESSION_RECORDS_PER_READ;
use crate::open_session::{OpenSessions, RecorderClaim};
use crate::runtime::is_visible;
use crate::scope::Scope;
use crate::service::Service;
use crate::writing::{Command, Decision, WriteContext, run_recorded};

/// The present store of a service as a recorder writes it. Records only into sessions that exist for a caller, and marks
/// new ones as the caller's.
///
/// It does not ask whether the caller may write.
#[derive(Clone)]
pub struct RecordingSink {
    // Not the service: it has the recordings, and these have their sinks.
    sessions: Arc<OpenSessions>,
    clock: Arc<dyn Clock>,
    scope: Scope,
}

/// A session that a recorder records.
pub struct RecordingClaim {
    claim: RecorderClaim,
    read: Option<ReadUpTo>,
}

/// How far a recorder has read a session that exists, or written it.
#[derive(Clone, Copy)]
struct ReadUpTo {
    incarnation: Incarnation,
    seq: u64,
}

impl RecordingSink {
    /// Records for a caller.
    #[must_use]
    pub fn new(service: &Service, scope: &Scope) -> Self {
        let sessions = service.runtime().sessions.clone();
        Self { sessions, clock: service.clock(), scope: scope.clone() }
    }

    /// Refuses a session of another caller. The answer is the same as for a name that is taken.
    async fn check(&self, session: &SessionId) -> Result<(), ServiceError> {
        match self.sessions.store().state(session).await? {
            Some(found) if !is_visible(&self.scope, &found.state) => Err(name_taken(session)),
            _ => Ok(()),
        }
    }

    /// Puts the pairs of the scope into every record that sets the metadata of a session.
    fn stamp(&self, new: NewRecord) -> Result<NewRecord, ServiceError> {
        let NewRecord { at_ms, record } = new;
        let record = match record {
            // The first record of a session has its time of creation.
            Record::Meta(change) if change.metadata.is_some() || change.created_at.is_some() => {
                let metadata = self.scope.stamp(change.metadata.clone())?;
                Record::Meta(MetaChange { metadata, ..change })
            }
            other => other,
        };
        Ok(record.at(at_ms))
    }
}

#[async_trait]
impl RecordSink for RecordingSink {
    type Error = ServiceError;
    type Claim = RecordingClaim;

    async fn load(&self, session_id: &str) -> Result<Vec<Record>, ServiceError> {
        let session = SessionId::from_stored(session_id);
        self.check(&session).await?;
        Ok(read_from(self.sessions.store(), &session, None).await?.0)
    }

    async fn claim(&self, session_id: &str) -> Result<(RecordingClaim, Vec<Record>), ServiceError> {
        let session = SessionId::from_stored(session_id);
        self.check(&session).await?;
        let claim = RecorderClaim::take(self.sessions.open(&session)).ok_or_else(has_recorder)?;
        let (records, read) = read_from(self.sessions.store(), &session, None).await?;
        Ok((RecordingClaim { claim, read }, records))
    }

    fn rest(&self, claim: &mut RecordingClaim) {
        claim.claim.rest();
    }

    async fn renew(&self, claim: &mut RecordingClaim) -> Result<bool, ServiceError> {
        if !claim.claim.resume() {
            return Ok(false);
        }
        let session = claim.claim.session().id();
        Ok(catch_up(self.sessions.store(), session, &mut claim.read).await?)
    }

    async fn append(
        &self,
        claim: &mut RecordingClaim,
        records: Vec<NewRecord>,
    ) -> Result<(), ServiceError> {
        let open = claim.claim.session();
        SessionId::parse(open.id().as_str())?;
        let stamped = records.into_iter().map(|new| self.stamp(new));
        let mut records = stamped.collect::<Result<Vec<NewRecord>, ServiceError>>()?;
        while !records.is_empty() {
            let (scope, read) = (self.scope.clone(), claim.read);
            let command = AppendRecorded { scope, read, records };
            let now_ms = self.clock.now_ms();
            let (rest, end) = run_recorded(&self.sessions, open, now_ms, command).await?;
            records = rest;
            claim.read =
                end.map(|(head, end)| ReadUpTo { incarnation: head.incarnation, seq: end.seq });
        }
        Ok(())
    }
}

impl fmt::Debug for RecordingSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingSink").finish_non_exhaustive()
    }
}

/// Appends what a recorder has; the answer is what it did not append yet.
struct AppendRecorded {
    scope: Scope,
    read: Option<ReadUpTo>,
    records: Vec<NewRecord>,
}

#[async_trait]
impl Command for AppendRecorded {
    type Answer = Vec<NewRecord>;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Vec<NewRecord>>, ServiceError> {
        let Some((head, state)) = context.accepted() else {
            return match self.read {
                Some(_) => Err(ServiceError::not_found(context.session())),
                None => Ok(self.create()),
            };
        };
        if !is_visible(&self.scope, &state) {
            return Err(name_taken(context.session()));
        }
        if self.read.is_none_or(|read| (read.incarnation, read.seq) != (head.incarnation, head.seq))
        {
            context.flush().await?;
            if !catch_up(context.store(), context.session(), &mut self.read).await? {
                return Err(has_recorder());
            }
        }
        Ok(Decision::Recorded(self.records.clone(), Vec::new()))
    }
}

impl AppendRecorded {
    /// Creates the session with its metadata only, if they are the first record. The store locks a session at the first
    /// append to it: if the first records were part of the creation, another process could take the session before the
    /// next ones.
    fn create(&self) -> Decision<Vec<NewRecord>> {
        match self.records.split_first() {
            Some((first, rest)) if !rest.is_empty() && is_metadata(first) => {
                Decision::Recorded(vec![first.clone()], rest.to_vec())
            }
            first => {
                let at_ms = first.map_or(0, |(first, _)| first.at_ms);
                let empty = Record::Meta(MetaChange::default()).at(at_ms);
                Decision::Recorded(vec![empty], self.records.clone())
            }
        }
    }
}

fn is_metadata(new: &NewRecord) -> bool {
    matches!(new.record.known(), Record::Meta(_))
}

/// The records of a session after those that were read, and how far it is read then.
async fn read_from(
    store: &dyn Store,
    session: &SessionId,
    mut read: Option<ReadUpTo>,
) -> Result<(Vec<Record>, Option<ReadUpTo>), StoreError> {
    let mut after = Position::at(read.map_or(0, |read| read.seq));
    let mut records = Vec::new();
    loop {
        let mut query = RecordQuery::after(after, RECORDED_SESSION_RECORDS_PER_READ);
        query.incarnation = read.map(|read| read.incarnation);
        let page = match store.read_records(session, &query).await {
            Err(StoreError::NotFound { .. }) => return Ok((records, read)),
            page => page?,
        };
        after = page.position_after(after);
        read = Some(ReadUpTo { incarnation: page.incarnation, seq: after.seq });
        let more = page.more;
        records.extend(page.records.into_iter().map(|stored| stored.record));
        if !more {
            return Ok((records, read));
        }
    }
}

/// Skips records that others appended since a session was read, such as a title or a label. Returns whether none of them
/// was a recording: as soon as another recorder writes, or the session is replaced, this recorder's state of it is
/// wrong.
async fn catch_up(
    store: &dyn Store,
    session: &SessionId,
    read: &mut Option<ReadUpTo>,
) -> Result<bool, StoreError> {
    let present = store.state(session).await?.map(|snapshot| snapshot.head.incarnation);
    if read.is_some_and(|read| present != Some(read.incarnation)) {
        return Ok(false);
    }
    let (records, end) = read_from(store, session, *read).await?;
    *read = end;
    Ok(!records.iter().any(|record| matches!(record.known(), Record::Loop(_))))
}

/// Another recorder records the session.
fn has_recorder() -> ServiceError {
    ServiceError::Locked { holder: ANOTHER_RECORDER.to_owned() }
}

fn name_taken(session: &SessionId) -> ServiceError {
    ServiceError::AlreadyExists { session: session.to_string() }
}
