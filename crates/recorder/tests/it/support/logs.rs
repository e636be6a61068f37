//! Logs that a durable recorder writes into, in memory.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bough_recorder::{
    AgentEvent, DurableOptions, RecordSink, RecordedSession, SessionRecorder,
    SessionRecorderConfig, fold_records,
};
use bough_session::{NewRecord, Record};
use tokio::sync::Semaphore;

#[derive(Debug, thiserror::Error)]
#[error("the disk is full")]
pub(crate) struct DiskFull;

/// Logs in memory. `gate` lets appends through; sessions in `broken` fail, those in `explosive` panic.
pub(crate) struct Logs {
    pub(crate) logs: Mutex<HashMap<String, Vec<Record>>>,
    pub(crate) appends: Mutex<usize>,
    pub(crate) gate: Semaphore,
    pub(crate) broken: HashSet<String>,
    pub(crate) explosive: HashSet<String>,
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            logs: Mutex::default(),
            appends: Mutex::default(),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            broken: HashSet::new(),
            explosive: HashSet::new(),
        }
    }
}

impl Logs {
    pub(crate) fn log(&self, session_id: &str) -> Vec<Record> {
        self.logs.lock().unwrap().get(session_id).cloned().unwrap_or_default()
    }

    pub(crate) fn fold(&self, session_id: &str) -> Option<RecordedSession> {
        fold_records(session_id, &self.log(session_id))
    }
}

#[async_trait]
impl RecordSink for Logs {
    type Error = DiskFull;
    type Claim = String;

    async fn load(&self, session_id: &str) -> Result<Vec<Record>, DiskFull> {
        Ok(self.log(session_id))
    }

    async fn claim(&self, session_id: &str) -> Result<(String, Vec<Record>), DiskFull> {
        Ok((session_id.to_owned(), self.log(session_id)))
    }

    async fn append(
        &self,
        session_id: &mut String,
        records: Vec<NewRecord>,
    ) -> Result<(), DiskFull> {
        self.gate.acquire().await.unwrap().forget();
        if self.broken.contains(session_id.as_str()) {
            return Err(DiskFull);
        }
        assert!(!self.explosive.contains(session_id.as_str()), "the sink is badly written");
        *self.appends.lock().unwrap() += 1;
        let mut logs = self.logs.lock().unwrap();
        let log = logs.entry(session_id.clone()).or_default();
        log.extend(records.into_iter().map(|record| record.record));
        Ok(())
    }
}

pub(crate) fn in_memory(events: impl IntoIterator<Item = AgentEvent>) -> Vec<RecordedSession> {
    let mut recorder = SessionRecorder::new(SessionRecorderConfig::default());
    for event in events {
        recorder.on_event(event);
    }
    recorder.flush();
    recorder.drain_completed()
}

/// Options that collect every notice: the number of the event, and its text.
pub(crate) fn with_notices() -> (DurableOptions, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let notices = Arc::clone(&heard);
    let options = DurableOptions {
        on_notice: Some(Arc::new(move |number, notice| {
            notices.lock().unwrap().push(format!("{number}: {notice}"));
        })),
        ..DurableOptions::default()
    };
    (options, heard)
}
