//! The query language: words, phrases and filters.

pub(crate) mod dates;
mod parse;

use bough_session::Role;

use crate::document::FieldKind;

pub use parse::{QueryError, parse_query};

/// A parsed query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// All of these must match.
    pub wanted: Vec<Phrase>,
    /// None of these may match.
    pub unwanted: Vec<Phrase>,
    /// The conditions beside the words.
    pub filters: Filters,
}

/// Words that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrase {
    /// The words, in order; never empty.
    pub words: Vec<Word>,
    /// Whether the last word is only the beginning of one.
    pub is_prefix: bool,
}

/// A word of a query. It is found by its parts in this order, or by the word as one term: a text may have it in another
/// case, which has other parts or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The terms of its parts, in order; never empty. A word that is not in camel case has one.
    pub parts: Vec<String>,
    /// The word as one term; `None` for characters of a script without spaces.
    pub whole: Option<String>,
}

/// The conditions beside the words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters {
    /// One of these roles.
    pub roles: Vec<Role>,
    /// None of these roles.
    pub not_roles: Vec<Role>,
    /// Names of tools, models and agents that must be there, or must not.
    pub names: Vec<NameFilter>,
    /// What kind of text the words are in: one of these; empty is any.
    pub kinds: Vec<FieldKind>,
    /// Look into old revisions, and nowhere else.
    pub is_old: bool,
    /// Made at this time or later, milliseconds since the epoch.
    pub after_ms: Option<i64>,
    /// Made before this time.
    pub before_ms: Option<i64>,
    /// In this session: its id, or the beginning of it.
    pub session: Option<String>,
    /// Whether that is a whole id, so that no other session is meant. Parsing a query cannot tell.
    pub is_whole_session: bool,
    /// In this directory or below it; without a slash, in a directory of this name.
    pub project: Option<String>,
}

/// A name that must be there, or must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameFilter {
    /// Whose name.
    pub of: NameKind,
    /// The name or a part of it.
    pub phrase: Phrase,
    /// Whether it must not be there.
    pub is_negated: bool,
}

/// Kinds of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A tool.
    Tool,
    /// A model, with its provider.
    Model,
    /// An agent.
    Agent,
}

impl Query {
    /// Whether a session that works in `project` can have hits.
    #[must_use]
    pub fn fits_project(&self, project: Option<&str>) -> bool {
        let Some(wanted) = &self.filters.project else { return true };
        let Some(project) = project else { return false };
        if wanted.contains('/') {
            return project
                .strip_prefix(wanted.trim_end_matches('/'))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        }
        project.split('/').any(|part| part == wanted)
    }

    /// Whether hits may be in a session with this id.
    #[must_use]
    pub fn fits_session(&self, id: &str) -> bool {
        match &self.filters.session {
            Some(wanted) if self.filters.is_whole_session => id == wanted,
            Some(wanted) => id.starts_with(wanted),
            None => true,
        }
    }

    /// Whether the words may be in text of this kind.
    #[must_use]
    pub fn looks_into(&self, kind: FieldKind) -> bool {
        self.filters.kinds.is_empty() || self.filters.kinds.contains(&kind)
    }
}
