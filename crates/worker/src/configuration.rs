//! The engine's configuration worker, which stores our settings under the id of session-manager.

use std::time::Duration;

use bough_service::WORKER_NAME;
use iii_sdk::protocol::{RegisterTriggerInput, TriggerRequest};
use iii_sdk::{Error, IIIClient};
use serde_json::{Value, json};

use crate::error::WorkerError;

/// How long one call may take.
const CALL_MS: u64 = 2500;
/// How often a call is tried, with a growing pause in between.
const ATTEMPTS: u32 = 3;
/// How often a configuration worker that does not take the schema after a restart of the engine is asked again.
const AGAIN_ATTEMPTS: u32 = 40;
/// The first pause; the next is twice as long.
const PAUSE: Duration = Duration::from_millis(250);

/// Registers the schema of the settings, stores initial values once, and reads them. `None` without a configuration
/// worker.
pub(crate) async fn configure(
    client: &IIIClient,
    schema: &Value,
    initial_value: Value,
) -> Result<Option<Value>, WorkerError> {
    let stored = match patiently(client, "configuration::get", &json!({ "id": WORKER_NAME })).await
    {
        Ok(answer) => value_of(&answer),
        Err(error) if is_missing_function(&error) => return Ok(None),
        Err(error) if is_unknown(&error) => None,
        Err(error) => return Err(error.into()),
    };
    let mut entry = entry(schema);
    // What is stored is never overwritten.
    if let (None, Some(map)) = (&stored, entry.as_object_mut()) {
        map.insert("initial_value".to_owned(), initial_value.clone());
    }
    patiently(client, "configuration::register", &entry).await?;
    let now = read(client).await?;
    Ok(Some(now.unwrap_or(initial_value)))
}

/// Registers the schema of the settings with a restarted configuration worker; waits a while for it to appear.
pub(crate) async fn register_again(client: &IIIClient, schema: &Value) -> Result<(), WorkerError> {
    let entry = entry(schema);
    let mut left = AGAIN_ATTEMPTS;
    loop {
        match patiently(client, "configuration::register", &entry).await {
            Ok(_) => return Ok(()),
            Err(error) if left == 0 => return Err(error.into()),
            // It may not be there yet, or be there and not ready.
            Err(_) => left -= 1,
        }
    }
}

fn entry(schema: &Value) -> Value {
    json!({
        "id": WORKER_NAME,
        "name": "Session manager",
        "description": "Where sessions are stored, and how lists are paged.",
        "schema": schema,
    })
}

/// Reads the stored settings, in which the configuration worker has replaced placeholders.
pub(crate) async fn read(client: &IIIClient) -> Result<Option<Value>, WorkerError> {
    let answer = patiently(client, "configuration::get", &json!({ "id": WORKER_NAME })).await?;
    Ok(value_of(&answer))
}

/// Subscribes to changes of the settings.
#[expect(deprecated, reason = "engines before 0.25 know only this way, and later ones still do")]
pub(crate) fn follow(client: &IIIClient) -> Result<(), WorkerError> {
    client.register_trigger(RegisterTriggerInput {
        trigger_type: "configuration".to_owned(),
        function_id: "session::on-config-change".to_owned(),
        config: json!({ "configuration_id": WORKER_NAME, "event_types": ["configuration:updated"] }),
        metadata: None,
        namespace: None,
        trigger_namespace: None,
    })?;
    Ok(())
}

fn value_of(answer: &Value) -> Option<Value> {
    answer.get("value").filter(|value| !value.is_null()).cloned()
}

async fn patiently(client: &IIIClient, function: &str, payload: &Value) -> Result<Value, Error> {
    let mut pause = PAUSE;
    let mut attempt = 1;
    loop {
        let request = TriggerRequest {
            function_id: function.to_owned(),
            payload: payload.clone(),
            action: None,
            timeout_ms: Some(CALL_MS),
        };
        match client.trigger(request).await {
            Ok(answer) => return Ok(answer),
            Err(error) if attempt >= ATTEMPTS || is_unknown(&error) => return Err(error),
            Err(_) => {
                tokio::time::sleep(pause).await;
                pause *= 2;
                attempt += 1;
            }
        }
    }
}

/// No worker hosts the function.
fn is_missing_function(error: &Error) -> bool {
    matches!(error, Error::Remote { code, .. } if code == "function_not_found")
}

/// The configuration worker has nothing under our id yet.
fn is_unknown(error: &Error) -> bool {
    let Error::Remote { code, message, .. } = error else {
        return false;
    };
    ["NOT_REGISTERED", "NOT_FOUND"].iter().any(|word| code == word || message.contains(word))
}
