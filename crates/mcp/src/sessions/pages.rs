//! Pages of messages that are bounded by their bytes.

use serde_json::{Value, json};

use super::{CallRefused, Functions, SessionHost};
use crate::limits::{PAGE, PAGE_BYTES_MAX};

impl<F: Functions> SessionHost<F> {
    /// A page of messages within the bound: fewer are requested until it fits. A single message that is too large is
    /// left out, and its place says so.
    pub(super) async fn bounded_page(
        &self,
        function: &str,
        mut request: Value,
    ) -> Result<Value, CallRefused> {
        loop {
            let mut page = self.call(function, request.clone()).await?;
            if page.to_string().len() <= PAGE_BYTES_MAX {
                return Ok(page);
            }
            let limit = request.get("limit").and_then(Value::as_u64).unwrap_or(PAGE as u64);
            let count = page.get("messages").and_then(Value::as_array).map_or(0, Vec::len) as u64;
            if count <= 1 {
                leave_out(&mut page);
                return Ok(page);
            }
            if let Some(fields) = request.as_object_mut() {
                fields.insert("limit".to_owned(), (limit.min(count) / 2).max(1).into());
            }
        }
    }
}

/// Replaces a message by its size.
fn leave_out(page: &mut Value) {
    let items = page.get_mut("messages").and_then(Value::as_array_mut);
    for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
        for name in ["message", "custom"] {
            let Some(whole) = item.remove(name) else { continue };
            let bytes = whole.to_string().len();
            let role = whole.get("role").cloned();
            let note =
                format!("it has {bytes} bytes, more than the {PAGE_BYTES_MAX} of one answer");
            item.insert(
                "left_out".to_owned(),
                json!({ "role": role, "bytes": bytes, "note": note }),
            );
        }
    }
}
