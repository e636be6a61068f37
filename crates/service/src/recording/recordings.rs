//! Recordings that are open: each has a recorder, and counts its events.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use bough_session::limits::check_at_most;

use super::sink::RecordingSink;
use super::stream::{NewEvents, RecordingStream};
use crate::api::{RecordRequest, RecordResponse, RecordingRequest, RecordingResponse};
use crate::error::ServiceError;
use crate::limits::{
    RECORDING_EVENTS_PER_CALL_MAX, RECORDING_ID_BYTES_MAX, RECORDING_KEPT_FOR_MS, RECORDINGS_MAX,
};
use crate::lock::lock;
use crate::scope::Scope;
use crate::service::Service;

/// The open recordings of a store.
#[derive(Default)]
pub(crate) struct Recordings {
    open: Mutex<HashMap<RecordingKey, Arc<OpenRecording>>>,
}

/// A recording belongs to all callers with the same scope, so it can be continued with a new token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RecordingKey {
    scope: String,
    recording_id: String,
}

struct OpenRecording {
    stream: tokio::sync::Mutex<RecordingStream>,
    used_ms: AtomicI64,
}

/// Records the next events of a recording. They are durable when this returns.
pub(crate) async fn record(
    service: &Service,
    scope: &Scope,
    request: RecordRequest,
) -> Result<RecordResponse, ServiceError> {
    let count = request.events.len();
    check_at_most("events", "events", count, RECORDING_EVENTS_PER_CALL_MAX)?;
    let events = NewEvents::read(request.after, &request.events)?;
    // Only a recording with a name may have begun before.
    let before = if request.recording_id.is_empty() { Some(0) } else { request.after };
    let recording_id = match request.recording_id {
        name if name.is_empty() => service.fresh_session_id()?.to_string(),
        name => name,
    };
    check_at_most("recording_id", "bytes", recording_id.len(), RECORDING_ID_BYTES_MAX)?;
    let key = RecordingKey::new(scope, recording_id);
    let (runtime, now_ms) = (service.runtime(), service.now_ms());
    let sink = RecordingSink::new(service, scope);
    let finish = request.finish.unwrap_or_default();
    // Runs to completion even if the caller goes away: the count must not be behind the recorder.
    let work = tokio::spawn(async move {
        let recordings = &runtime.recordings;
        let open = recordings.open(&key, now_ms, || RecordingStream::begin(sink, before))?;
        let mut stream = open.stream.lock().await;
        if let Err(error) = stream.check_begun(&events) {
            // The caller begins again with earlier events, which this stream would pass over.
            recordings.close(&key);
            return Err(error);
        }
        let recorded = stream.record(events).await;
        let recorded = match recorded {
            Ok(recorded) if finish => stream.finish().await.map(|()| recorded),
            other => other,
        };
        // After a failure the caller starts again with the events of the loops that have not ended.
        if finish || matches!(&recorded, Err(error) if !is_gap(error)) {
            recordings.close(&key);
        }
        Ok(recorded?.into_response(key.recording_id, &stream))
    });
    work.await.map_err(|error| ServiceError::storage(format!("recording broke off: {error}")))?
}

/// Where an open recording stands.
pub(crate) async fn recording(
    service: &Service,
    scope: &Scope,
    request: RecordingRequest,
) -> Result<Option<RecordingResponse>, ServiceError> {
    let key = RecordingKey::new(scope, request.recording_id);
    let Some(open) = service.runtime().recordings.get(&key, service.now_ms()) else {
        return Ok(None);
    };
    let stream = open.stream.lock().await;
    let (position, resume_after) = (stream.position(), stream.resume_after());
    Ok(Some(RecordingResponse { recording_id: key.recording_id, position, resume_after }))
}

const fn is_gap(error: &ServiceError) -> bool {
    matches!(error, ServiceError::RecordingGap { .. })
}

impl RecordingKey {
    fn new(scope: &Scope, recording_id: String) -> Self {
        let scope = serde_json::Value::Object(scope.metadata().clone()).to_string();
        Self { scope, recording_id }
    }
}

impl Recordings {
    /// The recording of a key; begins it if it is not open.
    fn open(
        &self,
        key: &RecordingKey,
        now_ms: i64,
        begin: impl FnOnce() -> RecordingStream,
    ) -> Result<Arc<OpenRecording>, ServiceError> {
        let mut open = lock(&self.open);
        if let Some(known) = open.get(key) {
            known.used_ms.store(now_ms, Ordering::Relaxed);
            return Ok(Arc::clone(known));
        }
        drop_unused(&mut open, now_ms);
        check_at_most("recordings", "open recordings", open.len() + 1, RECORDINGS_MAX)?;
        let stream = tokio::sync::Mutex::new(begin());
        let recording = Arc::new(OpenRecording { stream, used_ms: AtomicI64::new(now_ms) });
        open.insert(key.clone(), Arc::clone(&recording));
        Ok(recording)
    }

    fn get(&self, key: &RecordingKey, now_ms: i64) -> Option<Arc<OpenRecording>> {
        let known = lock(&self.open).get(key).cloned()?;
        known.used_ms.store(now_ms, Ordering::Relaxed);
        Some(known)
    }

    fn close(&self, key: &RecordingKey) {
        lock(&self.open).remove(key);
    }
}

/// Drops recordings that were not continued. Their loops stay open in the log, for the next recorder.
fn drop_unused(open: &mut HashMap<RecordingKey, Arc<OpenRecording>>, now_ms: i64) {
    let kept_since = now_ms.saturating_sub(RECORDING_KEPT_FOR_MS);
    open.retain(|_, recording| {
        recording.used_ms.load(Ordering::Relaxed) >= kept_since || Arc::strong_count(recording) > 1
    });
}
