use serde::Deserialize;
use serde_json::{Map, Value, json};

const STORY: &str = include_str!("story.json");

/// The beginnings of words that the live session is about, one after the other.
const LIVE_WORDS: [(&str, &str); 4] = [
    ("calen", "calendar"),
    ("conf", "configuration"),
    ("sched", "schedule"),
    ("perm", "permission"),
];

/// Everything that the demo writes.
#[derive(Debug, Deserialize)]
pub(crate) struct Story {
    /// The sessions of the past, the newest first.
    pub(crate) sessions: Vec<StorySession>,
    /// The session that is written live, with `{part}` and `{whole}` for a word of [`LIVE_WORDS`].
    live: Value,
}

/// One session of the story.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StorySession {
    pub(crate) title: String,
    pub(crate) metadata: Map<String, Value>,
    /// Its status at the end; idle if absent.
    #[serde(default)]
    pub(crate) status: Option<String>,
    /// Why it failed.
    #[serde(default)]
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) steps: Vec<Step>,
    /// The same exchange many times, for a session that is long enough to scroll.
    #[serde(default)]
    pub(crate) long: Option<Long>,
}

/// One step of a session, distinguished by its members.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Step {
    /// Names an entry.
    Label { label: String, text: String },
    /// Moves the active leaf.
    Leaf { leaf: String },
    /// Sums up what came before an entry.
    Compaction { compaction: String, kept: String, tokens: u64 },
    /// The person says something.
    User(UserStep),
    /// A tool answers.
    Result(ResultStep),
    /// The model says something.
    Reply(ReplyStep),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserStep {
    pub(crate) entry: String,
    /// Seconds before now.
    #[serde(default)]
    pub(crate) ago: i64,
    /// The entry that it follows, when it is not the last one.
    #[serde(default)]
    pub(crate) parent: Option<String>,
    pub(crate) user: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResultStep {
    #[serde(default)]
    pub(crate) ago: i64,
    /// The call that this answers.
    pub(crate) result: String,
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) error: bool,
    pub(crate) text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplyStep {
    pub(crate) entry: String,
    #[serde(default)]
    pub(crate) ago: i64,
    #[serde(default)]
    pub(crate) thinking: Option<String>,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) calls: Vec<ToolCall>,
    #[serde(default)]
    pub(crate) usage: Option<Value>,
    /// Why the model stopped, if it did not end normally.
    #[serde(default)]
    pub(crate) stop: Option<String>,
    /// What went wrong.
    #[serde(default)]
    pub(crate) failure: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

/// A question and an answer, `turns` times. `{n}`, `{words}` and `{longest}` are numbers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Long {
    pub(crate) turns: u64,
    pub(crate) ago: i64,
    pub(crate) user: String,
    pub(crate) text: String,
}

impl Story {
    pub(crate) fn read() -> Result<Self, serde_json::Error> {
        serde_json::from_str(STORY)
    }

    /// The session that is written live in a round.
    pub(crate) fn live(&self, round: usize) -> Result<StorySession, serde_json::Error> {
        let words = LIVE_WORDS.get(round % LIVE_WORDS.len());
        let (part, whole) = words.copied().unwrap_or_default();
        let text = self.live.to_string();
        serde_json::from_str(&text.replace("{part}", part).replace("{whole}", whole))
    }
}

impl UserStep {
    pub(crate) fn message(&self, timestamp: i64) -> Value {
        json!({ "role": "user", "content": [text(&self.user)], "timestamp": timestamp })
    }
}

impl ResultStep {
    pub(crate) fn message(&self, timestamp: i64) -> Value {
        json!({
            "role": "function_result", "function_call_id": self.result, "function_id": self.tool,
            "content": [text(&self.text)], "is_error": self.error, "timestamp": timestamp,
        })
    }
}

impl ReplyStep {
    /// The blocks of the reply: the thinking, the text, and the calls.
    pub(crate) fn content(&self) -> Vec<Value> {
        let thought = self.thinking.iter().map(|text| json!({ "type": "thinking", "text": text }));
        let calls = self.calls.iter().map(|call| {
            json!({
                "type": "function_call", "id": call.id, "function_id": call.tool,
                "arguments": call.arguments,
            })
        });
        thought.chain([text(&self.text)]).chain(calls).collect()
    }

    pub(crate) fn stop_reason(&self) -> &str {
        let natural = if self.calls.is_empty() { "end" } else { "function_call" };
        self.stop.as_deref().unwrap_or(natural)
    }

    /// The reply with this content, before its usage is known.
    pub(crate) fn message(&self, timestamp: i64, content: Vec<Value>) -> Value {
        json!({
            "role": "assistant", "content": content, "stop_reason": self.stop_reason(),
            "model": "demo-large", "provider": "demo", "timestamp": timestamp,
        })
    }

    /// The reply in its final form.
    pub(crate) fn whole_message(&self, timestamp: i64) -> Value {
        let mut message = self.message(timestamp, self.content());
        if let Some(members) = message.as_object_mut() {
            members.extend(self.usage.clone().map(|usage| ("usage".to_owned(), usage)));
            if let Some(failure) = &self.failure {
                members.insert("error_message".to_owned(), json!(failure));
                members.insert("error_kind".to_owned(), json!("transient"));
            }
        }
        message
    }
}

impl Long {
    /// The messages of one turn.
    pub(crate) fn turn(&self, turn: u64, now_ms: i64) -> [Value; 2] {
        /// Seconds from a question to its answer, and to the next question.
        const SECONDS: (i64, i64) = (8, 90);
        let begun = self.ago - i64::try_from(turn).unwrap_or(0) * SECONDS.1;
        let fill = |text: &str| {
            text.replace("{n}", &(turn + 1).to_string())
                .replace("{words}", &(900 + turn * 37 % 800).to_string())
                .replace("{longest}", &(20 + turn * 7 % 30).to_string())
        };
        let ask =
            UserStep { entry: String::new(), ago: begun, parent: None, user: fill(&self.user) };
        let answer = ReplyStep {
            entry: String::new(),
            ago: begun - SECONDS.0,
            thinking: None,
            text: fill(&self.text),
            calls: Vec::new(),
            usage: Some(json!({ "input": 600 + turn, "output": 30, "cost_usd": 0.0011 })),
            stop: None,
            failure: None,
        };
        [ask.message(at(now_ms, ask.ago)), answer.whole_message(at(now_ms, answer.ago))]
    }
}

/// The time so many seconds before another, in milliseconds since the epoch.
pub(crate) const fn at(now_ms: i64, seconds_ago: i64) -> i64 {
    now_ms.saturating_sub(seconds_ago.saturating_mul(1000))
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_the_story_is_read_as_what_it_is() {
        let story = Story::read().unwrap();
        let steps: Vec<&Step> = story.sessions.iter().flat_map(|session| &session.steps).collect();
        let count = |is: fn(&Step) -> bool| steps.iter().filter(|step| is(step)).count();
        assert_eq!(count(|step| matches!(step, Step::Label { .. })), 2);
        assert_eq!(count(|step| matches!(step, Step::Leaf { .. })), 1);
        assert_eq!(count(|step| matches!(step, Step::Compaction { .. })), 1);
        assert_eq!(count(|step| matches!(step, Step::Result(_))), 6);
        assert!(count(|step| matches!(step, Step::User(_))) > 5);
        let live: Vec<StorySession> = (0..8).map(|round| story.live(round).unwrap()).collect();
        let has_reply = |session: &StorySession| {
            session.steps.iter().any(|step| matches!(step, Step::Reply(_)))
        };
        assert!(live.iter().all(has_reply));
        let titles: std::collections::BTreeSet<&str> =
            live.iter().map(|session| session.title.as_str()).collect();
        assert_eq!(titles.len(), LIVE_WORDS.len());
        assert!(titles.iter().all(|title| !title.contains('{')), "{titles:?}");
    }
}
