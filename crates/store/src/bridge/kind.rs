//! Which kind of main is at the other end.

use std::sync::Arc;

use bough_platform::Entropy;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::client::{CallError, Client};
use super::original::{Original, is_original};
use super::store::READ;
use crate::StoreError;
use crate::changes::ChangeHub;

/// Finds out once, as soon as the main answers. Cheap to clone; clones share what was found.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    client: Client,
    hub: ChangeHub,
    entropy: Arc<dyn Entropy>,
    found: Arc<OnceCell<Option<Original>>>,
}

impl Kind {
    pub(super) fn new(client: Client, hub: ChangeHub, entropy: Arc<dyn Entropy>) -> Self {
        Self { client, hub, entropy, found: Arc::default() }
    }

    /// The original main, if that is what the other end is; `None` for one with atomic commits.
    pub(super) async fn original(&self) -> Result<Option<&Original>, StoreError> {
        Ok(self.found.get_or_try_init(|| self.find()).await?.as_ref())
    }

    async fn find(&self) -> Result<Option<Original>, StoreError> {
        match self.client.call(READ, json!({"op": "change_cursor"})).await {
            Ok(Value::Null) | Err(CallError::NoFunction) => {}
            Ok(_) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // An engine whose main is not there yet knows neither.
        if !is_original(&self.client).await? {
            return Err(CallError::NoFunction.into());
        }
        let original = Original::new(self.client.clone(), self.hub.clone(), self.entropy.as_ref())?;
        Ok(Some(original))
    }
}
