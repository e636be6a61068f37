use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bough_session::{Incarnation, SessionId};
use serde::{Deserialize, Serialize};

use crate::StoreError;
use crate::opaque_cursor::{Sealed, seal, unseal};
use crate::types::{ChangeCursor, ListOrder, ListQuery};

/// Where a page of a list ended.
///
/// A list by last change is walked in two phases. First the sessions in order; one that changes meanwhile
/// moves to the front and may be missed there. Then those that changed since the first page, by id,
/// which does not move: so each is returned at least once, and the walk ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListCursor {
    /// The order that the list is in.
    #[serde(rename = "o")]
    pub(crate) order: ListOrder,
    /// The time of the last session, by which the list is ordered.
    #[serde(rename = "k")]
    pub(crate) key: i64,
    /// The last session.
    #[serde(rename = "id")]
    pub(crate) id: SessionId,
    /// Where the feed of all sessions was at the first page, sealed: it counts the writes of all users.
    #[serde(rename = "f")]
    first_page: String,
    /// Which phase the page ended in.
    #[serde(rename = "p", default, skip_serializing_if = "Phase::is_ordered")]
    pub(crate) phase: Phase,
}

/// The two phases of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// The sessions in order.
    #[default]
    Ordered,
    /// Those that changed since the first page.
    Changed,
}

impl Phase {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_ordered(&self) -> bool {
        *self == Self::Ordered
    }
}

impl ListCursor {
    pub(crate) fn new(
        order: ListOrder,
        (key, id): (i64, SessionId),
        first_page: &ChangeCursor,
        phase: Phase,
    ) -> Self {
        let mut number = Sealed::default();
        number.split_at_mut(8).0.copy_from_slice(&first_page.number.to_be_bytes());
        Self { order, key, id, first_page: seal(first_page.epoch, &number), phase }
    }

    /// The cursor of a query, if it has one; refuses one that is not ours or of another order.
    pub(crate) fn of(query: &ListQuery) -> Result<Option<Self>, StoreError> {
        let Some(text) = &query.cursor else {
            return Ok(None);
        };
        let bytes = STANDARD.decode(text).map_err(|_| StoreError::InvalidCursor)?;
        let cursor: Self = serde_json::from_slice(&bytes).map_err(|_| StoreError::InvalidCursor)?;
        if cursor.order != query.order {
            return Err(StoreError::InvalidCursor);
        }
        Ok(Some(cursor))
    }

    /// Where the feed of all sessions was at the first page. In another epoch numbers say nothing, so
    /// everything counts as changed.
    pub(crate) fn first_page(&self, epoch: Incarnation) -> ChangeCursor {
        let text = unseal(epoch, &self.first_page);
        let number = text.and_then(|text| text.first_chunk().copied()).map(u64::from_be_bytes);
        ChangeCursor { epoch, number: number.unwrap_or(0) }
    }

    pub(crate) fn encode(&self) -> String {
        // A struct of numbers and texts always has a JSON form.
        STANDARD.encode(serde_json::to_vec(self).unwrap_or_default())
    }
}
