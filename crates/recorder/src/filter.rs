//! Input filters: they check a user's input before any model sees it.

use std::fmt;
use std::sync::Arc;

use bough_session::{AgentMessage, ContentBlock};

use crate::event::{AgentEnd, AgentEvent, InputRejected};
use crate::message::RecordedMessage;
use crate::time::Timestamp;

/// The verdict of a filter on a user's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterResult {
    /// Nothing is wrong with it.
    Pass,
    /// It may go on, with a warning that the model reads too.
    Warn(String),
    /// It must not go on.
    Reject(String),
}

/// Checks a user's input. Filters run on every input, so they must be fast.
pub trait InputFilter: Send + Sync {
    /// Checks the whole text of the input.
    fn filter(&self, text: &str) -> FilterResult;
}

impl<F: Fn(&str) -> FilterResult + Send + Sync> InputFilter for F {
    fn filter(&self, text: &str) -> FilterResult {
        self(text)
    }
}

/// Filters, one after the other.
#[derive(Clone, Default)]
pub struct InputFilters(Vec<Arc<dyn InputFilter>>);

/// Input that a filter refused. No model may be called for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the input was refused: {reason}")]
pub struct RejectedInput {
    /// Why.
    pub reason: String,
    loop_id: String,
}

impl InputFilters {
    /// Adds a filter behind the others.
    #[must_use]
    pub fn with(mut self, filter: impl InputFilter + 'static) -> Self {
        self.0.push(Arc::new(filter));
        self
    }

    /// Passes the input to every filter, in order, until one refuses it. Returns what the model may read: the input,
    /// with all warnings after the last text of the user.
    ///
    /// Call this before the model, for prompts as well as for input that comes while a loop runs. If the input is
    /// refused, send [`RejectedInput::events`] instead of calling the model.
    pub fn admit(
        &self,
        loop_id: &str,
        messages: impl IntoIterator<Item = impl Into<RecordedMessage>>,
    ) -> Result<Vec<RecordedMessage>, RejectedInput> {
        let mut messages: Vec<RecordedMessage> = messages.into_iter().map(Into::into).collect();
        let texts: Vec<String> = messages
            .iter()
            .filter(|message| is_users(message))
            .map(RecordedMessage::text)
            .collect();
        if texts.is_empty() {
            return Ok(messages);
        }
        let text = texts.join("\n");
        let mut warnings = Vec::new();
        for filter in &self.0 {
            match filter.filter(&text) {
                FilterResult::Pass => {}
                FilterResult::Warn(warning) => warnings.push(format!("[Warning: {warning}]")),
                FilterResult::Reject(reason) => {
                    return Err(RejectedInput { reason, loop_id: loop_id.to_owned() });
                }
            }
        }
        if !warnings.is_empty() {
            append(&mut messages, warnings.join("\n"));
        }
        Ok(messages)
    }
}

impl RejectedInput {
    /// The only events that the agent sends: the refusal, and the end of its loop.
    #[must_use]
    pub fn events(&self, at: Timestamp) -> [AgentEvent; 2] {
        let rejected = InputRejected { loop_id: self.loop_id.clone(), reason: self.reason.clone() };
        let end = AgentEnd::rejected(self.loop_id.as_str(), self.reason.as_str(), at);
        [rejected.into(), end.into()]
    }
}

fn is_users(message: &RecordedMessage) -> bool {
    matches!(message.known(), Some(AgentMessage::User(_)))
}

fn append(messages: &mut [RecordedMessage], text: String) {
    let last = messages.iter_mut().rev().find(|message| is_users(message));
    if let Some(last) = last {
        last.change(|said| said.message.content_mut().push(ContentBlock::text(text)));
    }
}

impl fmt::Debug for InputFilters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InputFilters({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn warn_of(word: &'static str) -> impl InputFilter {
        move |text: &str| {
            if text.contains(word) {
                FilterResult::Warn(format!("it says {word}"))
            } else {
                FilterResult::Pass
            }
        }
    }

    fn refuse(word: &'static str) -> impl InputFilter {
        move |text: &str| {
            if text.contains(word) {
                FilterResult::Reject(format!("no {word}"))
            } else {
                FilterResult::Pass
            }
        }
    }

    #[test]
    fn warnings_are_put_behind_the_last_words_of_the_user() {
        let filters = InputFilters::default().with(warn_of("cat")).with(warn_of("dog"));
        let input = vec![
            RecordedMessage::user("a cat", 1),
            RecordedMessage::user("and a dog", 2),
            RecordedMessage::extension("ui", serde_json::json!("cat")),
        ];
        let admitted = filters.admit("l", input.clone()).unwrap();
        assert_eq!(admitted[0], input[0]);
        assert_eq!(admitted[1].text(), "and a dog\n[Warning: it says cat]\n[Warning: it says dog]");
        assert_eq!(admitted[2], input[2]);
        assert_eq!(input[1].text(), "and a dog", "what came in stays as it was");
    }

    #[test]
    fn the_first_refusal_ends_it() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let counting = move |_: &str| {
            count.fetch_add(1, Ordering::SeqCst);
            FilterResult::Pass
        };
        let filters = InputFilters::default().with(refuse("secret")).with(counting);
        filters.admit("l", vec![RecordedMessage::user("hello", 1)]).unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        let refused = filters.admit("l", vec![RecordedMessage::user("a secret", 1)]).unwrap_err();
        assert_eq!(refused.reason, "no secret");
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        let [rejected, end] = refused.events(Timestamp::default());
        assert_eq!(rejected.type_name(), "InputRejected");
        assert!(matches!(end, AgentEvent::AgentEnd(end) if end.rejection.is_some()));
    }

    #[test]
    fn what_no_user_said_is_not_looked_at() {
        let filters = InputFilters::default().with(refuse(""));
        let input = vec![RecordedMessage::extension("ui", serde_json::json!(1))];
        assert!(filters.admit("l", input).is_ok());
    }
}
