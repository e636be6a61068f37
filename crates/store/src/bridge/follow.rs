//! Follows the main's changes, and wakes the subscribers here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::client::Client;
use super::kind::Kind;
use super::protocol::{ReadRequest, to_json};
use super::store::{READ, answer_of, answers_to};
use crate::StoreError;
use crate::changes::ChangeHub;
use crate::types::{ChangeCursor, ChangePage};

/// How long one question for changes waits.
const WAIT: Duration = Duration::from_secs(20);
/// Changes of one answer.
const LIMIT: usize = 1000;
/// How long to wait after a failure.
const PAUSE: Duration = Duration::from_millis(500);

/// Follows until the task is ended. After each failure it checks again whether the main is this process.
pub(super) async fn follow(
    client: Client,
    hub: ChangeHub,
    kind: Kind,
    own_name: String,
    is_self: Arc<AtomicBool>,
) {
    let mut cursor: Option<ChangeCursor> = None;
    let mut is_checked = false;
    loop {
        client.connected().await;
        if !is_checked && answers_to(&client, &own_name).await {
            is_self.store(true, Ordering::Relaxed);
            return;
        }
        is_checked = true;
        match kind.session_manager().await {
            Ok(Some(main)) => return main.follow().await,
            Ok(None) => {}
            Err(_) => {
                is_checked = false;
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        }
        let next = changes(&client, cursor.as_ref()).await.map(|page| {
            for change in &page.changes {
                hub.wake(&change.session_id, Some(change.end()));
            }
            page.next
        });
        match next {
            Ok(next) => cursor = Some(next),
            Err(_) => {
                is_checked = false;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn changes(client: &Client, after: Option<&ChangeCursor>) -> Result<ChangePage, StoreError> {
    let wait_ms = u64::try_from(WAIT.as_millis()).ok();
    let request = ReadRequest::Changes { after: after.cloned(), limit: LIMIT, wait_ms };
    let answer = client.call_within(READ, to_json(&request)?, WAIT * 2).await;
    answer_of(answer)
}
