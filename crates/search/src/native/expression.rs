//! Documents and queries in the form that FTS5 takes.
//!
//! Filters are terms as well, so `role:user` narrows a search as a word does. Their terms begin with a sign that no
//! word has.

use std::collections::BTreeSet;

use bough_session::Role;

use super::phrase::{excluded, phrase, whole_mark};
use crate::document::{Document, FieldKind};
use crate::query::dates::month_of;
use crate::query::{NameKind, Query};
use crate::tokens::{TokenKind, parts, tokenize};

/// The first character of the terms of filters. The tokenizer separates words at it, so no term of
/// a text has it.
pub(super) const SIGN: char = '\u{b6}';

/// The character after the sign says which filter, so that a tool is not taken for a model.
const ROLE: char = 'r';
const TOOL: char = 't';
const MODEL: char = 'm';
const AGENT: char = 'a';
const MONTH: char = 'd';
const KIND: char = 'k';
const SESSION: char = 's';
const OLD: char = 'o';

/// The month of documents whose time is out of range.
const NO_MONTH: i64 = 0;

/// The columns of the words, in the order of the table: thinking and calls stand in messages beside other text, and a search in
/// one of them must not read every message whose other text has the word. All else is in the first.
const COLUMNS: [&str; 3] = ["w", "thinking", "call"];

const fn column_of(kind: FieldKind) -> usize {
    match kind {
        FieldKind::Thinking => 1,
        FieldKind::Call => 2,
        _ => 0,
    }
}

/// The terms of a document by columns: those of filters in the first, then its words, and its words in camel case as one term
/// each.
///
/// Fields of one column are not separated: a phrase that reaches over the end of a field gives a candidate that the store
/// refuses.
pub(super) fn terms(document: &Document, session: i64) -> [String; COLUMNS.len()] {
    let mut columns = [facets(document, session), String::new(), String::new()];
    let mut wholes: [BTreeSet<String>; COLUMNS.len()] = Default::default();
    for field in &document.fields {
        let column = column_of(field.kind);
        let (Some(text), Some(wholes)) = (columns.get_mut(column), wholes.get_mut(column)) else {
            continue;
        };
        tokenize(&field.text, |token| match token.kind {
            TokenKind::Whole => {
                if !wholes.contains(token.term) {
                    wholes.insert(token.term.to_owned());
                }
            }
            TokenKind::Part | TokenKind::Gram => {
                text.push_str(token.term);
                text.push(' ');
            }
        });
    }
    let mark = whole_mark("");
    for (text, wholes) in columns.iter_mut().zip(wholes) {
        for whole in wholes {
            text.push_str(&mark);
            text.push_str(&whole);
            text.push(' ');
        }
    }
    columns
}

/// The part of an expression that keeps words to the columns of the kinds that a query asks for.
fn only_in(kinds: &[FieldKind]) -> String {
    let columns: BTreeSet<usize> = kinds.iter().map(|kind| column_of(*kind)).collect();
    if columns.is_empty() || columns.len() == COLUMNS.len() {
        return String::new();
    }
    let names: Vec<&str> = columns.iter().filter_map(|at| COLUMNS.get(*at).copied()).collect();
    format!("{{{}}} : ", names.join(" "))
}

fn facets(document: &Document, session: i64) -> String {
    let mut text = String::new();
    facet(&mut text, SESSION, &session.to_string());
    facet(&mut text, MONTH, &month(document).to_string());
    if document.old_revision.is_some() {
        facet(&mut text, OLD, "");
    }
    // Nearly every document has plain text, so a filter for it searches the words alone.
    let kinds = document.fields.iter().map(|field| field.kind);
    let kinds: BTreeSet<FieldKind> = kinds.filter(|kind| *kind != FieldKind::Text).collect();
    kinds.into_iter().for_each(|kind| facet(&mut text, KIND, kind.as_str()));
    if let Some(role) = document.role {
        facet(&mut text, ROLE, role_name(role));
    }
    let tools: BTreeSet<&String> = document.tools.iter().collect();
    tools.into_iter().for_each(|tool| name(&mut text, TOOL, tool));
    document.model.iter().for_each(|model| name(&mut text, MODEL, model));
    document.agent.iter().for_each(|agent| name(&mut text, AGENT, agent));
    text
}

/// The month that a document is of, as the number 202610.
pub(super) fn month(document: &Document) -> i64 {
    month_of(document.at_ms).unwrap_or(NO_MONTH)
}

fn facet(text: &mut String, kind: char, word: &str) {
    text.extend([SIGN, kind]);
    text.push_str(word);
    text.push(' ');
}

fn name(text: &mut String, kind: char, name: &str) {
    parts(name).iter().for_each(|part| facet(text, kind, part));
    let mark = whole_mark("");
    tokenize(name, |token| {
        if token.kind == TokenKind::Whole {
            facet(text, kind, &format!("{mark}{}", token.term));
        }
    });
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::FunctionResult => "tool",
        Role::Custom => "custom",
    }
}

/// How much a document of this kind counts, in hundredths: a title or a question says more than the output of a tool.
pub(super) fn weight(document: &Document) -> i64 {
    match (document.seq, document.role) {
        (0, _) => 200,
        (_, Some(Role::User)) => 120,
        (_, Some(Role::Assistant) | None) => 110,
        (_, Some(Role::Custom)) => 100,
        (_, Some(Role::FunctionResult)) => 80,
    }
}

/// The filters that the index knows as terms or rows.
#[derive(Debug, Default)]
pub(super) struct Narrowing {
    /// Only documents of these months; `None` is any.
    pub(super) months: Option<Vec<i64>>,
    /// Only documents of these sessions; `None` is any.
    pub(super) sessions: Option<Vec<i64>>,
}

/// The months that a query may be about, of those that documents are of.
pub(super) fn months_of(query: &Query, known: &[i64]) -> Vec<i64> {
    let from = query.filters.after_ms.and_then(month_of);
    let to = query.filters.before_ms.and_then(month_of);
    let fits = |month: &i64| {
        let is_between = from.is_none_or(|from| from <= *month) && to.is_none_or(|to| *month <= to);
        is_between || *month == NO_MONTH
    };
    known.iter().copied().filter(fits).collect()
}

/// The query as an expression of FTS5. Every document that matches the query matches the
/// expression.
pub(super) fn expression(query: &Query, narrowing: &Narrowing) -> String {
    let filters = &query.filters;
    let only_in = only_in(&filters.kinds);
    let words = query.wanted.iter().map(|wanted| format!("{only_in}{}", phrase("", wanted)));
    let mut wanted: Vec<String> = words.collect();
    let mut unwanted = Vec::new();
    // A word that is excluded in one kind of text may be in another.
    if filters.kinds.is_empty() {
        unwanted.extend(query.unwanted.iter().filter_map(|phrase| excluded("", phrase)));
    }
    let roles = |roles: &[Role]| any(ROLE, roles.iter().map(|role| role_name(*role)));
    if !filters.roles.is_empty() {
        wanted.push(roles(&filters.roles));
    }
    if !filters.not_roles.is_empty() {
        unwanted.push(roles(&filters.not_roles));
    }
    if !filters.kinds.is_empty() && !filters.kinds.contains(&FieldKind::Text) {
        wanted.push(any(KIND, filters.kinds.iter().map(|kind| kind.as_str())));
    }
    if filters.is_old {
        wanted.push(any(OLD, [""].into_iter()));
    }
    for filter in &filters.names {
        let kind = match filter.of {
            NameKind::Tool => TOOL,
            NameKind::Model => MODEL,
            NameKind::Agent => AGENT,
        };
        let mark = format!("{SIGN}{kind}");
        match filter.is_negated {
            true => unwanted.extend(excluded(&mark, &filter.phrase)),
            false => wanted.push(phrase(&mark, &filter.phrase)),
        }
    }
    if let Some(sessions) = &narrowing.sessions {
        wanted.push(any(SESSION, sessions.iter().map(i64::to_string)));
    }
    if let Some(months) = &narrowing.months {
        wanted.push(any(MONTH, months.iter().map(i64::to_string)));
    }
    let mut text = wanted.join(" AND ");
    for phrase in unwanted {
        text = format!("({text}) NOT {phrase}");
    }
    text
}

/// Whether an expression has terms of its own. If not, it needs the months: FTS5 cannot search for exclusions alone.
pub(super) fn has_terms(query: &Query) -> bool {
    let filters = &query.filters;
    let has_kinds = !filters.kinds.is_empty() && !filters.kinds.contains(&FieldKind::Text);
    let has_name = filters.names.iter().any(|filter| !filter.is_negated);
    !query.wanted.is_empty() || !filters.roles.is_empty() || has_kinds || filters.is_old || has_name
}

fn any(kind: char, words: impl Iterator<Item = impl AsRef<str>>) -> String {
    let each = words.map(|word| format!("\"{SIGN}{kind}{}\"", word.as_ref()));
    format!("({})", each.collect::<Vec<_>>().join(" OR "))
}
