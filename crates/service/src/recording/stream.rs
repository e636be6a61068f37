//! The events of one recording, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use bough_recorder::{AgentEvent, DurableError, DurableOptions, DurableRecorder, Notice};
use bough_session::{RawJson, SessionId};

use super::sink::RecordingSink;
use crate::api::{RecordResponse, RecordingNotice};
use crate::error::ServiceError;
use crate::limits::{RECORDING_LOOPS_REMEMBERED_MAX, RECORDING_NOTICES_MAX};
use crate::lock::lock;
use crate::request::{why_not, without_position};

/// A recorder and the progress of its stream.
pub(super) struct RecordingStream {
    recorder: DurableRecorder<RecordingSink>,
    /// How many events came before the recorder's first.
    before: u64,
    /// How many events the recorder got, all of them durable.
    got: u64,
    unended: Unended,
    /// The loops that began in this stream, where it need not have begun with its first event.
    begun: Option<Begun>,
    notices: Arc<Mutex<Notices>>,
}

/// Events of a request.
pub(super) struct NewEvents {
    after: Option<u64>,
    events: Vec<(AgentEvent, Vec<String>)>,
}

/// The result of a request's events.
pub(super) struct Recorded {
    sessions: BTreeSet<String>,
    notices: Notices,
}

/// Why JSON is not an event, with the field that is wrong, if its place is known.
fn not_an_event(index: usize, event: &str, error: &serde_json::Error) -> ServiceError {
    let reason = why_not::<AgentEvent>(event, "type");
    let (why, path) = reason.unwrap_or_else(|| (without_position(error), String::new()));
    let detail = format!("`events[{index}]` is not an event: {why}");
    ServiceError::Malformed { detail, path: format!("/events/{index}{path}") }
}

impl NewEvents {
    /// Understands all events, or refuses the request.
    pub(super) fn read(after: Option<u64>, events: &[RawJson]) -> Result<Self, ServiceError> {
        let read = events.iter().enumerate().map(|(index, event)| {
            let read = AgentEvent::from_line(event.get());
            read.map_err(|error| not_an_event(index, event.get(), &error))
        });
        Ok(Self { after, events: read.collect::<Result<_, _>>()? })
    }
}

impl RecordingStream {
    /// Begins after the events that came `before`. `None` means that the caller does not say how many there were.
    pub(super) fn begin(sink: RecordingSink, before: Option<u64>) -> Self {
        let begun = (before != Some(0)).then(Begun::default);
        let before = before.unwrap_or_default();
        let notices = Arc::new(Mutex::new(Notices::default()));
        let list = Arc::clone(&notices);
        let options = DurableOptions {
            on_notice: Some(Arc::new(move |event, notice: &Notice| lock(&list).add(event, notice))),
            ..DurableOptions::default()
        };
        let recorder = DurableRecorder::start(Arc::new(sink), options);
        Self { recorder, before, got: 0, unended: Unended::default(), begun, notices }
    }

    /// How many events are durable.
    pub(super) const fn position(&self) -> u64 {
        self.before.saturating_add(self.got)
    }

    /// Where to continue with a recorder that does not know this stream.
    pub(super) fn resume_after(&self) -> u64 {
        self.unended.first().map_or(self.position(), |first| first.saturating_sub(1))
    }

    /// Refuses events of loops whose first events are not in this stream. The recorder of a stream that was resumed too
    /// late would lose messages of these loops.
    pub(super) fn check_begun(&self, new: &NewEvents) -> Result<(), ServiceError> {
        let Some(begun) = &self.begun else { return Ok(()) };
        let known = self.known(new);
        let mut here = Begun::default();
        for (number, (event, _)) in (self.position() + 1..).zip(new.events.iter().skip(known)) {
            let unknown = |id: &&str| !begun.has(event, id) && !here.has(event, id);
            if let Some(loop_id) = continued(event).filter(unknown) {
                let loop_id = loop_id.to_owned();
                return Err(ServiceError::RecordingNotBegun { event: number, loop_id });
            }
            here.note(event);
        }
        Ok(())
    }

    /// How many of the events the stream has already.
    fn known(&self, new: &NewEvents) -> usize {
        let position = self.position();
        let known = position.saturating_sub(new.after.unwrap_or(position));
        usize::try_from(known).unwrap_or(usize::MAX)
    }

    /// Records the events that the stream does not have yet, and waits until they are durable.
    pub(super) async fn record(&mut self, new: NewEvents) -> Result<Recorded, ServiceError> {
        let position = self.position();
        let after = new.after.unwrap_or(position);
        if after > position {
            return Err(ServiceError::RecordingGap { after, position });
        }
        let known = self.known(&new);
        // The recorder does not get these; it reports repetitions among the others itself.
        lock(&self.notices).already += known.min(new.events.len()) as u64;
        let mut sessions = BTreeSet::new();
        for (event, unknown_fields) in new.events.into_iter().skip(known) {
            self.got += 1;
            sessions.extend(event.session_id().map(str::to_owned));
            self.unended.note(self.position(), &event);
            if let Some(begun) = &mut self.begun {
                begun.note(&event);
            }
            for field in unknown_fields {
                let text = format!("{} has a field {field:?} that is not kept", event.type_name());
                lock(&self.notices).push(self.got, text, false);
            }
            self.recorder.record(event).await.map_err(in_words)?;
        }
        self.recorder.sync().await.map_err(in_words)?;
        let mut notices = std::mem::take(&mut *lock(&self.notices));
        notices.count_from(self.before);
        Ok(Recorded { sessions, notices })
    }

    /// Aborts the loops that have not ended.
    pub(super) async fn finish(&mut self) -> Result<(), ServiceError> {
        let recording = self.recorder.clone().finish().await.map_err(in_words)?;
        self.unended = Unended::default();
        recording.failures.into_iter().next().map_or(Ok(()), |failure| Err(in_words(failure)))
    }
}

impl Recorded {
    pub(super) fn into_response(
        self,
        recording_id: String,
        stream: &RecordingStream,
    ) -> RecordResponse {
        let Notices { list, already, left_out } = self.notices;
        RecordResponse {
            recording_id,
            position: stream.position(),
            resume_after: stream.resume_after(),
            sessions: self.sessions.into_iter().map(SessionId::from_stored).collect(),
            already_recorded: already,
            notices: list,
            notices_left_out: left_out,
        }
    }
}

fn in_words(error: DurableError<ServiceError>) -> ServiceError {
    match error {
        DurableError::NotStored { source, .. } => ServiceError::clone(&source),
        other => ServiceError::storage(other.to_string()),
    }
}

/// Loops and groups that have not ended, with the number of the event that began each.
#[derive(Debug, Default)]
struct Unended {
    loops: BTreeMap<String, u64>,
    groups: BTreeMap<Vec<String>, u64>,
}

impl Unended {
    fn note(&mut self, number: u64, event: &AgentEvent) {
        match event {
            AgentEvent::AgentStart(start) => {
                self.loops.entry(start.loop_id.clone()).or_insert(number);
            }
            AgentEvent::AgentEnd(end) => {
                self.loops.remove(&end.loop_id);
            }
            AgentEvent::ParallelLoopStart(start) => {
                self.groups.entry(start.loop_ids.clone()).or_insert(number);
            }
            AgentEvent::ParallelLoopEnd(end) => {
                self.groups.retain(|loop_ids, _| !loop_ids.contains(&end.selected_loop_id));
            }
            _ => {}
        }
    }

    /// The number of the first event that is still needed.
    fn first(&self) -> Option<u64> {
        self.loops.values().chain(self.groups.values()).min().copied()
    }
}

/// The loop, or a loop of the group, that an event continues. Its first event must be in the same stream.
fn continued(event: &AgentEvent) -> Option<&str> {
    match event {
        AgentEvent::ParallelLoopEnd(end) => Some(&end.selected_loop_id),
        AgentEvent::AgentEnd(_)
        | AgentEvent::TurnStart(_)
        | AgentEvent::TurnEnd(_)
        | AgentEvent::MessageStart(_)
        | AgentEvent::MessageUpdate(_)
        | AgentEvent::MessageEnd(_)
        | AgentEvent::ToolExecutionStart(_)
        | AgentEvent::ToolExecutionUpdate(_)
        | AgentEvent::ToolExecutionEnd(_)
        | AgentEvent::ProgressMessage(_) => event.loop_id(),
        // The others begin something, or apply to loops that have ended too.
        _ => None,
    }
}

/// Loops and groups that began, whether they have ended or not.
#[derive(Debug, Default)]
struct Begun {
    loops: BTreeSet<String>,
    /// The loops of all groups.
    in_groups: BTreeSet<String>,
}

impl Begun {
    fn note(&mut self, event: &AgentEvent) {
        if self.is_full() {
            return;
        }
        match event {
            AgentEvent::AgentStart(start) => {
                self.loops.insert(start.loop_id.clone());
            }
            AgentEvent::ParallelLoopStart(start) => {
                self.in_groups.extend(start.loop_ids.iter().cloned());
            }
            _ => {}
        }
    }

    /// Whether the loop or group that an event continues began. After very many loops the answer is always yes: what
    /// was open when the stream was resumed has shown itself by then.
    fn has(&self, event: &AgentEvent, loop_id: &str) -> bool {
        let of_group = matches!(event, AgentEvent::ParallelLoopEnd(_));
        let begun = if of_group { &self.in_groups } else { &self.loops };
        begun.contains(loop_id) || self.is_full()
    }

    fn is_full(&self) -> bool {
        self.loops.len().max(self.in_groups.len()) >= RECORDING_LOOPS_REMEMBERED_MAX
    }
}

/// The notices about the events of a request.
#[derive(Debug, Default)]
struct Notices {
    list: Vec<RecordingNotice>,
    already: u64,
    left_out: u64,
}

impl Notices {
    fn add(&mut self, event: u64, notice: &Notice) {
        if matches!(notice, Notice::AlreadyRecorded { .. }) {
            self.already += 1;
        } else {
            self.push(event, notice.to_string(), notice.is_lost());
        }
    }

    fn push(&mut self, event: u64, notice: String, lost: bool) {
        if self.list.len() < RECORDING_NOTICES_MAX {
            self.list.push(RecordingNotice { event, notice, lost });
        } else {
            self.left_out += 1;
        }
    }

    /// The recorder numbers its own events; the recording had some before.
    fn count_from(&mut self, before: u64) {
        for notice in &mut self.list {
            notice.event = notice.event.saturating_add(before);
        }
        self.list.sort_by_key(|notice| notice.event);
    }
}
