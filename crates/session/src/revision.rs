//! Changes of a message after it was appended, and the small steps of a stream.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::diff::{ContentChange, DiffError};
use crate::json::is_default;
use crate::{
    AgentMessage, AssistantMessage, ContentBlock, Entry, EntryBody, EntryId, ErrorKind, JsonMap,
    ModelName, RawJson, Role, StopReason, Usage,
};

/// A change of a message's content: one step, or a range of steps joined into one.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// The entry that changes.
    pub entry_id: EntryId,
    /// The revision that the change starts from.
    pub from: u64,
    /// The revision that it leads to; more than one above `from` if steps were joined.
    pub to: u64,
    /// How the content changes.
    pub change: ContentChange,
    /// New details, for the roles that have them.
    pub details: Option<RawJson>,
    /// The writer's own correlation. The feed sends it; the entry does not keep it.
    pub origin: Option<JsonMap>,
    /// The end of a model's message. Rare, and larger than all the rest.
    pub finish: Option<Box<Finish>>,
}

/// One step of a stream: small, frequent, and soon joined with its neighbours.
#[derive(Clone, Debug, PartialEq)]
pub struct Delta {
    /// When, milliseconds since the epoch.
    pub at_ms: i64,
    /// The entry that changes.
    pub entry_id: EntryId,
    /// The revision that this step leads to, one above the one it starts from.
    pub revision: u64,
    /// How the content changes.
    pub change: ContentChange,
    /// New details, for the roles that have them.
    pub details: Option<RawJson>,
    /// The writer's own correlation.
    pub origin: Option<JsonMap>,
}

/// The end of a streamed model message, with values that its first record could not know. A value
/// that is `None` stays as it is. It applies to messages of the model only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finish {
    /// Why the model stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// The provider's own word for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_stop_reason: Option<String>,
    /// The error message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The kind of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ErrorKind>,
    /// Notices that did not stop the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<String>>,
    /// The model, if the message's first record did not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// Whether the message was not finished because its writer disappeared.
    #[serde(skip_serializing_if = "is_default")]
    pub aborted: bool,
    /// Its usage, and what the entry reported before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageChange>,
}

/// The usage of a message, replacing what it reported before. The model is included, so that sums
/// need not look the message up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsageChange {
    /// The model whose usage this is.
    pub model: String,
    /// What the message reported before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Usage>,
    /// What it reports now.
    pub after: Usage,
}

/// A revision that does not fit its entry.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RevisionError {
    /// It is about another entry.
    #[error("the change is about entry {given}, not {entry}")]
    OtherEntry {
        /// The entry that the change was applied to.
        entry: EntryId,
        /// The entry that the change names.
        given: EntryId,
    },
    /// It starts from another revision.
    #[error("the change starts from revision {from}; the entry is at revision {current}")]
    WrongRevision {
        /// Where the change starts.
        from: u64,
        /// Where the entry is.
        current: u64,
    },
    /// The entry is not a message.
    #[error("entry {entry} is not a message; only messages have revisions")]
    NotMessage {
        /// The entry.
        entry: EntryId,
    },
    /// The range of revisions is empty or too large.
    #[error("revision {to} does not follow revision {from}")]
    BadRange {
        /// Where the change starts.
        from: u64,
        /// Where it would lead.
        to: u64,
    },
    /// The difference does not fit the content.
    #[error(transparent)]
    Diff(#[from] DiffError),
}

impl Revision {
    /// The step from the entry's present content to `content`, stored as the difference.
    #[must_use]
    pub fn replace(entry: &Entry, content: &[ContentBlock], details: Option<RawJson>) -> Self {
        let message = entry.message();
        let old = message.as_deref().map_or(&[][..], AgentMessage::content);
        Self {
            entry_id: entry.id.clone(),
            from: entry.revision,
            to: entry.revision.saturating_add(1),
            change: ContentChange::between(old, content),
            details,
            origin: None,
            finish: None,
        }
    }

    /// Applies the change. On an error the entry is as it was.
    pub fn apply(&self, entry: &mut Entry) -> Result<(), RevisionError> {
        if self.entry_id != entry.id {
            return Err(RevisionError::OtherEntry {
                entry: entry.id.clone(),
                given: self.entry_id.clone(),
            });
        }
        if self.to <= self.from {
            let (from, to) = (self.from, self.to);
            return Err(RevisionError::BadRange { from, to });
        }
        if self.from != entry.revision {
            return Err(RevisionError::WrongRevision { from: self.from, current: entry.revision });
        }
        self.change_body(entry)?;
        if let Some(finish) = &self.finish {
            apply_finish(entry, finish);
        }
        entry.revision = self.to;
        Ok(())
    }

    fn change_body(&self, entry: &mut Entry) -> Result<(), RevisionError> {
        // The common case changes the content where it is, without copying it.
        if let EntryBody::Message(message) = &mut entry.body {
            let message = Arc::make_mut(message);
            self.change.apply(message.content_mut())?;
            if let Some(details) = &self.details {
                message.set_details(details.clone());
            }
            return Ok(());
        }
        let message =
            entry.message().ok_or_else(|| RevisionError::NotMessage { entry: entry.id.clone() })?;
        let mut content = message.content().to_vec();
        self.change.apply(&mut content)?;
        entry.set_content(content, self.details.clone());
        Ok(())
    }
}

impl Delta {
    /// The step as a revision.
    #[must_use]
    pub fn into_revision(self) -> Revision {
        Revision {
            entry_id: self.entry_id,
            from: self.revision.saturating_sub(1),
            to: self.revision,
            change: self.change,
            details: self.details,
            origin: self.origin,
            finish: None,
        }
    }

    /// Applies the step. On an error the entry is as it was.
    pub fn apply(&self, entry: &mut Entry) -> Result<(), RevisionError> {
        self.clone().into_revision().apply(entry)
    }
}

/// Joins steps into the one revision from `base` to `settled`, which the steps led to.
///
/// `origin` is that of the last step. Returns `None` if nothing changed.
#[must_use]
pub fn settle(base: &Entry, settled: &Entry, origin: Option<JsonMap>) -> Option<Revision> {
    if settled.revision <= base.revision {
        return None;
    }
    let (old, new) = (base.message()?, settled.message()?);
    let details = (old.details() != new.details()).then(|| new.details().cloned()).flatten();
    Some(Revision {
        entry_id: base.id.clone(),
        from: base.revision,
        to: settled.revision,
        change: ContentChange::between(old.content(), new.content()),
        details,
        origin,
        finish: None,
    })
}

fn apply_finish(entry: &mut Entry, finish: &Finish) {
    match &mut entry.body {
        // Only messages of the model have something to finish.
        EntryBody::Message(message) if message.role() != Role::Assistant => {}
        EntryBody::Message(message) => {
            if let AgentMessage::Assistant(message) = Arc::make_mut(message) {
                finish.apply_to(message);
            }
        }
        // The stored JSON stays; only its canonical view gets the end. The content was replaced just before.
        EntryBody::Foreign(body) => {
            if let Some(replaced) = &mut body.replaced {
                replaced.finish.get_or_insert_default().merge(finish);
            }
        }
        EntryBody::Custom(_) | EntryBody::Opaque(_) => {}
    }
}

impl Finish {
    /// Applies the end to a message of the model.
    pub(crate) fn apply_to(&self, message: &mut AssistantMessage) {
        if let Some(reason) = self.stop_reason {
            message.stop_reason = reason;
            // The word that the message began with is about another reason.
            message.native_stop_reason = None;
        }
        replace(&mut message.native_stop_reason, self.native_stop_reason.as_ref());
        replace(&mut message.error_message, self.error_message.as_ref());
        replace(&mut message.error_kind, self.error_kind.as_ref());
        replace(&mut message.warnings, self.warnings.as_ref());
        replace(&mut message.usage, self.usage.as_ref().map(|usage| &usage.after));
        if let Some(model) = &self.model {
            message.model.clone_from(&model.model);
            message.provider.clone_from(&model.provider);
        }
    }

    /// Takes over the values of a later one.
    fn merge(&mut self, later: &Self) {
        replace(&mut self.stop_reason, later.stop_reason.as_ref());
        replace(&mut self.native_stop_reason, later.native_stop_reason.as_ref());
        replace(&mut self.error_message, later.error_message.as_ref());
        replace(&mut self.error_kind, later.error_kind.as_ref());
        replace(&mut self.warnings, later.warnings.as_ref());
        replace(&mut self.usage, later.usage.as_ref());
        replace(&mut self.model, later.model.as_ref());
        self.aborted |= later.aborted;
    }
}

fn replace<T: Clone>(old: &mut Option<T>, new: Option<&T>) {
    if new.is_some() {
        *old = new.cloned();
    }
}
