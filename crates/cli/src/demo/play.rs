use std::collections::BTreeMap;
use std::time::Duration;

use bough_platform::{Clock, Entropy};
use bough_session::SessionId;
use serde_json::{Value, json};

use super::agent_run::AgentRun;
use super::events::{RunSessions, Tempo, TimedEvent, events_of};
use super::story::{Long, ReplyStep, Step, Story, StorySession, at};
use crate::app::App;
use crate::backend::{Backend, CallError};
use crate::command_error::CommandResult;

/// How fast the live sessions are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speed {
    /// The pause after a piece of a streamed reply.
    pub(crate) piece: Duration,
    /// The pause after a step of the streamed session.
    pub(crate) step: Duration,
    /// How long a second of the recorded session takes, in milliseconds.
    pub(crate) recorded_second_ms: i64,
}

impl Speed {
    /// Both sessions take well under a minute.
    pub(crate) const USUAL: Self = Self {
        piece: Duration::from_millis(60),
        step: Duration::from_millis(1500),
        recorded_second_ms: 200,
    };
}

/// How many turns of a long session are written at once.
const BATCH_TURNS: usize = 60;

/// Writes the sessions of the demo.
pub(crate) struct Player<'a> {
    backend: &'a Backend,
    entropy: &'a dyn Entropy,
    clock: &'a dyn Clock,
    now_ms: i64,
}

impl<'a> Player<'a> {
    pub(crate) fn new(app: &'a App, backend: &'a Backend) -> Self {
        Self { backend, entropy: &*app.entropy, clock: &*app.clock, now_ms: app.now_ms() }
    }
}

impl Player<'_> {
    /// Writes the sessions of the past, and returns their ids. The newest one is written last, so that it is the first
    /// of a list.
    pub(crate) async fn fill(&self, story: &Story) -> Result<Vec<String>, CallError> {
        let mut written = Vec::new();
        for session in story.sessions.iter().rev() {
            let id = self.create(session).await?;
            for step in &session.steps {
                self.write(&id, step).await?;
            }
            if let Some(long) = &session.long {
                self.write_long(&id, long).await?;
            }
            if let Some(status) = &session.status {
                self.set_status(&id, status, session.reason.as_deref()).await?;
            }
            written.push(id);
        }
        Ok(written)
    }

    /// Streams a session piece by piece, with the pauses of an agent at work.
    pub(crate) async fn stream_live(
        &self,
        session: &StorySession,
        speed: Speed,
    ) -> Result<String, CallError> {
        let id = self.create(session).await?;
        self.set_status(&id, "working", None).await?;
        for step in &session.steps {
            match step {
                Step::Reply(reply) => self.stream(&id, reply, speed).await?,
                _ => self.write(&id, step).await?,
            }
            tokio::time::sleep(speed.step).await;
        }
        self.set_status(&id, "done", None).await?;
        Ok(id)
    }

    /// Records an agent that was at work a while ago.
    pub(crate) async fn record_past(&self, run: &AgentRun) -> CommandResult<Vec<String>> {
        let tempo = Tempo { start_ms: at(self.now_ms, run.ago), second_ms: 1000 };
        let sessions = self.run_sessions(run)?;
        let events = events_of(run, &sessions, tempo);
        let events: Vec<Value> = events.into_iter().map(|timed| timed.event).collect();
        self.record(&sessions.main, events, true).await?;
        self.describe(run, &sessions).await
    }

    /// Records an agent that is at work now.
    pub(crate) async fn record_live(
        &self,
        run: &AgentRun,
        speed: Speed,
    ) -> CommandResult<Vec<String>> {
        let start_ms = self.clock.now_ms();
        let tempo = Tempo { start_ms, second_ms: speed.recorded_second_ms };
        let sessions = self.run_sessions(run)?;
        for TimedEvent { at_ms, event } in events_of(run, &sessions, tempo) {
            let wait = at_ms.saturating_sub(self.clock.now_ms());
            tokio::time::sleep(Duration::from_millis(u64::try_from(wait).unwrap_or(0))).await;
            self.record(&sessions.main, vec![event], false).await?;
        }
        self.record(&sessions.main, Vec::new(), true).await?;
        self.describe(run, &sessions).await
    }

    /// Removes sessions for good.
    pub(crate) async fn remove(&self, sessions: &[String]) -> Result<(), CallError> {
        for id in sessions {
            let request = json!({ "session_id": id });
            self.call("session::delete", request.clone()).await?;
            self.call("session::purge", request).await?;
        }
        Ok(())
    }

    /// The next events of the recording that is named after the main session.
    async fn record(
        &self,
        recording: &str,
        events: Vec<Value>,
        finish: bool,
    ) -> Result<(), CallError> {
        let request = json!({ "recording_id": recording, "events": events, "finish": finish });
        self.call("session::record", request).await.map(drop)
    }

    /// New ids for the sessions of a run.
    fn run_sessions(&self, run: &AgentRun) -> CommandResult<RunSessions> {
        let mut sub_agents = BTreeMap::new();
        for name in run.sub_agents.keys() {
            sub_agents.insert(name.clone(), self.new_session_id()?);
        }
        Ok(RunSessions { main: self.new_session_id()?, sub_agents })
    }

    fn new_session_id(&self) -> CommandResult<String> {
        let mut random = [0; 16];
        self.entropy.fill(&mut random)?;
        Ok(SessionId::generate(random).to_string())
    }

    /// Sets the titles of the recorded sessions, which no event of an agent has.
    async fn describe(&self, run: &AgentRun, sessions: &RunSessions) -> CommandResult<Vec<String>> {
        let sub_agents = sessions.sub_agents.iter().filter_map(|(name, id)| {
            let sub_agent = run.sub_agents.get(name)?;
            Some((id, sub_agent.title.as_str(), &sub_agent.agent))
        });
        // The main session changes last, so that it is the first of a list.
        let titles: Vec<(&String, &str, &String)> =
            sub_agents.chain([(&sessions.main, run.title.as_str(), &run.agent)]).collect();
        for (id, title, agent) in &titles {
            let metadata = json!({ "agent_id": agent, "project": run.project });
            let request = json!({ "session_id": id, "title": title, "metadata": metadata });
            self.call("session::set-meta", request).await?;
        }
        Ok(titles.into_iter().map(|(id, ..)| id.clone()).collect())
    }

    async fn create(&self, session: &StorySession) -> Result<String, CallError> {
        let request = json!({ "title": session.title, "metadata": session.metadata });
        let made = self.call("session::create", request).await?;
        Ok(made.get("session_id").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    async fn set_status(
        &self,
        id: &str,
        status: &str,
        reason: Option<&str>,
    ) -> Result<(), CallError> {
        let request = json!({ "session_id": id, "status": status, "reason": reason });
        self.call("session::set-status", request).await.map(drop)
    }

    /// Writes a step in its final form.
    async fn write(&self, id: &str, step: &Step) -> Result<(), CallError> {
        let time = |seconds| at(self.now_ms, seconds);
        let (function, request) = match step {
            Step::Label { label, text } => (
                "session::set-label",
                json!({ "session_id": id, "entry_id": label, "label": text }),
            ),
            Step::Leaf { leaf } => {
                ("session::set-active-leaf", json!({ "session_id": id, "entry_id": leaf }))
            }
            Step::Compaction { compaction, kept, tokens } => {
                let data = json!({
                    "summary": compaction, "first_kept_entry_id": kept, "tokens_before": tokens,
                });
                let custom = json!({ "custom_type": "bough.compaction", "data": data });
                ("session::append", json!({ "session_id": id, "custom": custom }))
            }
            Step::User(step) => (
                "session::append",
                json!({
                    "session_id": id, "entry_id": step.entry, "parent_id": step.parent,
                    "message": step.message(time(step.ago)),
                }),
            ),
            Step::Result(result) => {
                let message = result.message(time(result.ago));
                ("session::append", json!({ "session_id": id, "message": message }))
            }
            Step::Reply(reply) => {
                let message = reply.whole_message(time(reply.ago));
                let request =
                    json!({ "session_id": id, "entry_id": reply.entry, "message": message });
                ("session::append", request)
            }
        };
        self.call(function, request).await.map(drop)
    }

    async fn write_long(&self, id: &str, long: &Long) -> Result<(), CallError> {
        let turns: Vec<u64> = (0..long.turns).collect();
        for some in turns.chunks(BATCH_TURNS) {
            let messages: Vec<Value> =
                some.iter().flat_map(|turn| long.turn(*turn, self.now_ms)).collect();
            let request = json!({ "session_id": id, "messages": messages });
            self.call("session::append-many", request).await?;
        }
        Ok(())
    }

    /// Writes a reply piece by piece, then the calls that it makes, then its end.
    async fn stream(&self, id: &str, reply: &ReplyStep, speed: Speed) -> Result<(), CallError> {
        let place = json!({ "session_id": id, "entry_id": reply.entry });
        let message = reply.message(self.now_ms, Vec::new());
        self.call("session::append", with(&place, json!({ "message": message, "stream": true })))
            .await?;
        let texts = reply.thinking.iter().map(|text| ("thinking", text));
        for (block, (kind, text)) in texts.chain([("text", &reply.text)]).enumerate() {
            for piece in text.split_inclusive(' ') {
                let delta = json!({ "block": block, "kind": kind, "text": piece });
                self.call("session::append-delta", with(&place, delta)).await?;
                tokio::time::sleep(speed.piece).await;
            }
        }
        if !reply.calls.is_empty() {
            let whole = json!({ "content": reply.content() });
            self.call("session::update-message", with(&place, whole)).await?;
        }
        let end = json!({ "stop_reason": reply.stop_reason(), "usage": reply.usage });
        self.call("session::finish-message", with(&place, end)).await.map(drop)
    }

    async fn call(&self, function: &'static str, request: Value) -> Result<Value, CallError> {
        self.backend.call(function, &request).await
    }
}

/// The members of two objects.
fn with(place: &Value, more: Value) -> Value {
    let mut all = place.as_object().cloned().unwrap_or_default();
    if let Value::Object(more) = more {
        all.extend(more);
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bough_platform::{OsEntropy, SystemClock};

    use super::*;
    use crate::backend::Local;
    use crate::demo::rounds::Rounds;

    const AT_ONCE: Speed =
        Speed { piece: Duration::ZERO, step: Duration::ZERO, recorded_second_ms: 1 };

    async fn with_player(check: impl AsyncFnOnce(&Player<'_>)) {
        let folder = tempfile::tempdir().unwrap();
        let backend = Backend::Local(Local::open(folder.path().to_owned()).await.unwrap());
        let (entropy, clock) = (&OsEntropy, &SystemClock::new());
        let player = Player { backend: &backend, entropy, clock, now_ms: 1_790_000_000_000 };
        check(&player).await;
        backend.close().await.unwrap();
    }

    #[tokio::test]
    async fn the_streamed_session_ends_as_the_story_says() {
        with_player(async |player| {
            let story = Story::read().unwrap();
            let live = story.live(0).unwrap();
            let id = player.stream_live(&live, AT_ONCE).await.unwrap();
            let read = player.call("session::messages", json!({ "session_id": id })).await.unwrap();
            let messages = read["messages"].as_array().unwrap();
            assert_eq!(messages.len(), live.steps.len());
            for (item, step) in messages.iter().zip(&live.steps) {
                let Step::Reply(reply) = step else { continue };
                assert_eq!(item["message"]["content"], json!(reply.content()));
                assert_eq!(item["message"]["stop_reason"], reply.stop_reason());
                let usage = reply.usage.as_ref().unwrap();
                assert_eq!(item["message"]["usage"]["cost_usd"], usage["cost_usd"]);
            }
            let got = player.call("session::get", json!({ "session_id": id })).await.unwrap();
            assert_eq!(got["meta"]["status"], "done");
        })
        .await;
    }

    #[tokio::test]
    async fn the_recorded_agent_is_the_same_live_as_from_the_past() {
        with_player(async |player| {
            let run = AgentRun::read().unwrap();
            let past = player.record_past(&run).await.unwrap();
            let live = player.record_live(&run, AT_ONCE).await.unwrap();
            for (past, live) in past.iter().zip(&live) {
                assert_eq!(shape(player, past).await, shape(player, live).await);
            }
            let loops = shape(player, past.last().unwrap()).await;
            let kinds: Vec<&str> = loops.iter().map(|(kind, ..)| kind.as_str()).collect();
            assert_eq!(kinds.iter().filter(|kind| **kind == "rerun").count(), 1);
            assert_eq!(kinds.iter().filter(|kind| **kind == "branch").count(), 1);
            assert_eq!(loops.iter().map(|(_, _, spawned, _)| spawned).sum::<usize>(), 2);
            assert_eq!(loops.iter().filter(|(_, _, _, compacted)| *compacted).count(), 2);
            assert!(loops.iter().any(|(_, status, ..)| status == "rejected"));
        })
        .await;
    }

    #[tokio::test]
    async fn the_nightly_agent_used_something_on_each_of_many_days() {
        with_player(async |player| {
            let run = AgentRun::read_nightly().unwrap();
            player.record_past(&run).await.unwrap();
            let request = json!({ "by": ["day"] });
            let sums = player.call("session::stats", request).await.unwrap();
            let rows = sums["rows"].as_array().unwrap();
            assert!(rows.len() >= 18, "{rows:?}");
            for row in rows {
                assert!(row["usage"]["cost_usd"].as_f64().unwrap() > 0.01, "{row}");
            }
        })
        .await;
    }

    #[tokio::test]
    async fn rounds_replace_the_live_sessions_of_earlier_ones() {
        with_player(async |player| {
            let mut rounds = Rounds::new(player, Story::read().unwrap());
            let mut titles = BTreeSet::new();
            for _ in 0..6 {
                rounds.play_next(AT_ONCE).await.unwrap();
                let listed = player.call("session::list", json!({})).await.unwrap();
                let sessions = listed["sessions"].as_array().unwrap();
                assert!(sessions.len() <= 4, "{sessions:?}");
                let named = sessions.iter().map(|one| one["title"].as_str().unwrap().to_owned());
                titles.extend(named);
            }
            assert!(titles.len() >= 6, "{titles:?}");
            let trash = player.call("session::list-trash", json!({})).await.unwrap();
            assert_eq!(trash["sessions"], json!([]));
        })
        .await;
    }

    /// For each loop of a session: its kind, its status, its sub-agents, and whether it is compacted.
    async fn shape(player: &Player<'_>, id: &str) -> Vec<(String, String, usize, bool)> {
        let read = player.call("session::loops", json!({ "session_id": id })).await.unwrap();
        let of = |summary: &Value| {
            let text = |name: &str| summary[name].as_str().unwrap().to_owned();
            let spawned = summary["spawned"].as_array().unwrap().len();
            let is_compacted = summary["is_compacted"].as_bool().unwrap();
            (text("continuation"), text("status"), spawned, is_compacted)
        };
        read["loops"].as_array().unwrap().iter().map(of).collect()
    }
}
