//! Documents and queries as FTS5 takes them.

use std::collections::BTreeSet;
use std::fmt::Write;

use bough_session::Role;

use crate::document::{Document, FieldKind};
use crate::limits::MONTHS_MAX;
use crate::query::dates::{month_of, months_between};
use crate::query::{NameKind, Phrase, Query};
use crate::tokens::{TokenKind, parts, tokenize};

/// Stands between fields and between whole words, so that no phrase reaches over. No term is equal to it.
const GAP: &str = " \u{b7} ";

/// What facets begin with, so that a tool is not taken for a model.
const ROLE: char = 'r';
const TOOL: char = 't';
const MODEL: char = 'm';
const AGENT: char = 'a';
const MONTH: char = 'd';
const KIND: char = 'k';

/// The terms of a document, as the text of the first column.
pub(super) fn words(document: &Document) -> String {
    let mut text = String::new();
    let mut wholes = BTreeSet::new();
    for field in &document.fields {
        if !text.is_empty() {
            text.push_str(GAP);
        }
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
    for whole in wholes {
        text.push_str(GAP);
        text.push_str(&whole);
    }
    text
}

/// What filters ask for, as the text of the second column.
pub(super) fn facets(document: &Document) -> String {
    let mut text = String::new();
    // Nearly every document says something; who asks for that asks for the words alone.
    let kinds = document.fields.iter().map(|field| field.kind);
    let kinds: BTreeSet<FieldKind> = kinds.filter(|kind| *kind != FieldKind::Text).collect();
    kinds.into_iter().for_each(|kind| facet(&mut text, KIND, kind.as_str()));
    if let Some(role) = document.role {
        facet(&mut text, ROLE, role_name(role));
    }
    facet(&mut text, MONTH, &month_of(document.at_ms).unwrap_or_default());
    let tools: BTreeSet<&String> = document.tools.iter().collect();
    tools.into_iter().for_each(|tool| name(&mut text, TOOL, tool));
    document.model.iter().for_each(|model| name(&mut text, MODEL, model));
    document.agent.iter().for_each(|agent| name(&mut text, AGENT, agent));
    text
}

fn facet(text: &mut String, mark: char, word: &str) {
    text.push(mark);
    text.push_str(word);
    text.push(' ');
}

fn name(text: &mut String, mark: char, name: &str) {
    parts(name).iter().for_each(|part| facet(text, mark, part));
    tokenize(name, |token| {
        if token.kind == TokenKind::Whole {
            facet(text, mark, token.term);
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

/// The query as an expression of FTS5. Every document that fits the query fits the expression.
pub(super) fn expression(query: &Query) -> String {
    let filters = &query.filters;
    let mut wanted: Vec<String> =
        query.wanted.iter().map(|phrase| phrase_in('w', None, phrase)).collect();
    let mut unwanted = Vec::new();
    // A word that is not wanted in one kind of text may stand in another.
    if filters.kinds.is_empty() {
        unwanted.extend(query.unwanted.iter().map(|phrase| phrase_in('w', None, phrase)));
    }
    let any = |mark: char, words: Vec<&str>| {
        let each = words.iter().map(|word| format!("f : \"{mark}{word}\""));
        format!("({})", each.collect::<Vec<_>>().join(" OR "))
    };
    if !filters.roles.is_empty() {
        wanted.push(any(ROLE, filters.roles.iter().map(|role| role_name(*role)).collect()));
    }
    if !filters.not_roles.is_empty() {
        unwanted.push(any(ROLE, filters.not_roles.iter().map(|role| role_name(*role)).collect()));
    }
    if !filters.kinds.is_empty() && !filters.kinds.contains(&FieldKind::Text) {
        wanted.push(any(KIND, filters.kinds.iter().map(|kind| kind.as_str()).collect()));
    }
    for filter in &filters.names {
        let mark = match filter.of {
            NameKind::Tool => TOOL,
            NameKind::Model => MODEL,
            NameKind::Agent => AGENT,
        };
        let list = if filter.is_negated { &mut unwanted } else { &mut wanted };
        list.push(phrase_in('f', Some(mark), &filter.phrase));
    }
    if let Some(months) = months(query) {
        wanted.push(any(MONTH, months.iter().map(String::as_str).collect()));
    }
    if wanted.is_empty() {
        // Every document has a month.
        wanted.push(format!("f : \"{MONTH}\" *"));
    }
    let mut text = wanted.join(" AND ");
    for phrase in unwanted {
        text = format!("({text}) NOT {phrase}");
    }
    text
}

/// The months that a document may be of, where they are few. A range without an end has none: a clock that was wrong may have
/// written documents of the future.
fn months(query: &Query) -> Option<Vec<String>> {
    let (after, before) = (query.filters.after_ms?, query.filters.before_ms?);
    months_between(after, before, MONTHS_MAX).filter(|months| !months.is_empty())
}

fn phrase_in(column: char, mark: Option<char>, phrase: &Phrase) -> String {
    let mark = mark.map(String::from).unwrap_or_default();
    let marked: Vec<String> = phrase.terms.iter().map(|term| format!("{mark}{term}")).collect();
    let star = if phrase.is_prefix { " *" } else { "" };
    let mut text = format!("{column} : \"{}\"{star}", marked.join(" "));
    if let Some(whole) = &phrase.whole {
        // Writing to a String cannot fail.
        write!(text, " OR {column} : \"{mark}{whole}\"{star}").ok();
    }
    format!("({text})")
}
