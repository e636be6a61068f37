//! Replaces a log of documents by one with only the live records.

use async_trait::async_trait;
use bough_session::{MetaChange, NewRecord, Record};
use bough_store::{Head, RecordQuery};

use super::index::KeptRecord;
use crate::error::ServiceError;
use crate::limits::{BUILD_BATCH_BYTES, BUILD_BATCH_RECORDS};
use crate::writing::{Command, Decision, WriteContext};

/// Compacts the log of a scope if it is worth it. The session's lock is held meanwhile, so no other call of this process
/// writes or reads the scope. The store compares the head, so a write of another process makes this fail and is kept.
pub(super) struct Compact;

#[async_trait]
impl Command for Compact {
    type Answer = ();

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<()>, ServiceError> {
        if context.state().is_some() && context.documents().await?.is_wasteful() {
            // Another task that waited for the lock finds that it is done.
            context.flush().await?;
            if let Err(error) = rewrite(context).await {
                context.put_off_compaction();
                return Err(error);
            }
        }
        Ok(Decision::Nothing(()))
    }
}

async fn rewrite(context: &mut WriteContext<'_>) -> Result<(), ServiceError> {
    let session = context.session().clone();
    let Some((head, state)) = context.accepted() else { return Ok(()) };
    let first = MetaChange {
        kind: state.kind.clone(),
        metadata: state.meta.metadata.clone(),
        created_at: Some(state.meta.created_at),
        ..MetaChange::default()
    };
    let kept = context.documents().await?.kept();
    let mut draft = context.store().draft(&session).await?;
    draft.add(vec![Record::Meta(first).at(context.now_ms)].into()).await?;
    for part in parts(&kept) {
        draft.add(records(context, &head, part).await?.into()).await?;
    }
    let appended = draft.replace(&head).await?;
    appended.durable.await?;
    context.replaced_documents(appended.head.incarnation, &kept);
    Ok(())
}

/// The records in parts that fit in memory.
fn parts(kept: &[KeptRecord]) -> impl Iterator<Item = &[KeptRecord]> {
    let mut rest = kept;
    std::iter::from_fn(move || {
        let (mut count, mut bytes) = (0, 0_usize);
        for record in rest {
            if count == BUILD_BATCH_RECORDS || count > 0 && bytes >= BUILD_BATCH_BYTES {
                break;
            }
            (count, bytes) = (count + 1, bytes.saturating_add(record.bytes));
        }
        let (part, more) = rest.split_at_checked(count)?;
        rest = more;
        (!part.is_empty()).then_some(part)
    })
}

async fn records(
    context: &WriteContext<'_>,
    head: &Head,
    part: &[KeptRecord],
) -> Result<Vec<NewRecord>, ServiceError> {
    let numbers = part.iter().map(|record| record.seq).collect();
    let query = RecordQuery::numbers(head.incarnation, numbers);
    let page = context.store().read_records(context.session(), &query).await?;
    if page.records.len() != part.len() {
        return Err(ServiceError::storage("a record of a document is missing"));
    }
    Ok(page.records.into_iter().map(|stored| stored.record.at(stored.at_ms)).collect())
}
