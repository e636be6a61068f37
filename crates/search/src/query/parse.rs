//! Parses the text of a [`Query`].

use std::ops::Range;

use bough_session::Role;
use thiserror::Error;

use super::dates::begin_of_date;
use super::{NameFilter, NameKind, Phrase, Query, Word};
use crate::document::FieldKind;
use crate::limits::{
    GRAM_CHARS, PHRASE_TERMS_MAX, PREFIX_CHARS_MIN, QUERY_BYTES_MAX, QUERY_ITEMS_MAX,
};
use crate::tokens::{Token, TokenKind, tokenize};

/// A query that cannot be read, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueryError {
    /// There is nothing to look for.
    #[error(
        "the query has nothing to look for; give a word, a \"phrase\" or a filter such as role:user"
    )]
    Empty,
    /// Everything in it is negated.
    #[error("the query only says what to leave out; add a word or a filter to look for")]
    OnlyNegated,
    /// A quote is open at the end.
    #[error("a quote is not closed; add a \" after the phrase")]
    OpenQuote,
    /// It is too long.
    #[error(
        "the query is too long; use at most {QUERY_BYTES_MAX} bytes and {QUERY_ITEMS_MAX} words"
    )]
    TooLong,
    /// A prefix that too many words begin with.
    #[error(
        "`{given}` is too short a beginning; give at least {PREFIX_CHARS_MIN} letters of the word before the `*`"
    )]
    ShortPrefix {
        /// The given text.
        given: String,
    },
    /// An unknown filter whose name is close to a known one.
    #[error(
        "there is no filter `{given}:`; did you mean `{meant}:`? To look for the text, quote it: \"{given}:\u{2026}\""
    )]
    UnknownFilter {
        /// The given name.
        given: String,
        /// The similar filter.
        meant: &'static str,
    },
    /// A filter without a value.
    #[error("`{filter}:` needs a value, such as `{filter}:{example}`")]
    NoValue {
        /// The filter.
        filter: &'static str,
        /// A value that it takes.
        example: &'static str,
    },
    /// A value that a filter does not accept.
    #[error("`{filter}:{given}` is not understood; use {expected}")]
    BadValue {
        /// The filter.
        filter: &'static str,
        /// The given value.
        given: String,
        /// The accepted values.
        expected: String,
    },
    /// A filter that takes one value was given again.
    #[error("`{filter}:` is there twice; give it once")]
    Twice {
        /// The filter.
        filter: &'static str,
    },
    /// A filter that cannot be negated.
    #[error("`{filter}:` cannot be negated; leave out the `-`")]
    NotNegatable {
        /// The filter.
        filter: &'static str,
    },
}

/// The filters, each with a value that it takes.
const FILTERS: [(&str, &str); 9] = [
    ("role", "user"),
    ("tool", "bash"),
    ("model", "opus"),
    ("agent", "main"),
    ("after", "2026-10-01"),
    ("before", "2026-10-01"),
    ("project", "~/x"),
    ("session", "last-id"),
    ("is", "thinking"),
];

/// One word, phrase or filter as it is typed.
struct Item {
    is_negated: bool,
    /// The text before the colon, if it may be the name of a filter.
    name: Option<String>,
    text: String,
    is_quoted: bool,
}

/// Reads a query. `now_ms` is what `after:3d` counts from.
pub fn parse_query(text: &str, now_ms: i64) -> Result<Query, QueryError> {
    if text.len() > QUERY_BYTES_MAX {
        return Err(QueryError::TooLong);
    }
    let items = split(text)?;
    if items.len() > QUERY_ITEMS_MAX {
        return Err(QueryError::TooLong);
    }
    let mut query = Query::default();
    for item in items {
        add(&mut query, item, now_ms)?;
    }
    let is_positive = !query.wanted.is_empty() || has_filter(&query);
    match (is_positive, query.unwanted.is_empty() && query.filters == super::Filters::default()) {
        (true, _) => Ok(query),
        (false, true) => Err(QueryError::Empty),
        (false, false) => Err(QueryError::OnlyNegated),
    }
}

fn has_filter(query: &Query) -> bool {
    let filters = &query.filters;
    !filters.roles.is_empty()
        || !filters.kinds.is_empty()
        || filters.names.iter().any(|name| !name.is_negated)
        || filters.is_old
        || filters.after_ms.is_some()
        || filters.before_ms.is_some()
        || filters.session.is_some()
        || filters.project.is_some()
}

/// Splits at white space outside of quotes.
fn split(text: &str) -> Result<Vec<Item>, QueryError> {
    let mut items = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let after_dash = rest
            .strip_prefix('-')
            .filter(|after| after.starts_with(|next: char| next == '"' || next.is_alphanumeric()));
        let is_negated = after_dash.is_some();
        rest = after_dash.unwrap_or(rest);
        let name = filter_name(rest);
        if let Some(name) = &name {
            rest = rest.get(name.len() + 1..).unwrap_or_default();
        }
        let (text, is_quoted, left) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (inside, left) = split_quoted(quoted).ok_or(QueryError::OpenQuote)?;
                (inside, true, left)
            }
            None => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                let (word, left) = rest.split_at(end);
                (word.to_owned(), false, left)
            }
        };
        items.push(Item { is_negated, name, text, is_quoted });
        rest = left.trim_start();
    }
    Ok(items)
}

/// The text up to the closing quote, and what follows it. A quote that is written twice stands for itself: ids may have one.
fn split_quoted(quoted: &str) -> Option<(String, &str)> {
    let (mut text, mut rest) = (String::new(), quoted);
    loop {
        let (inside, left) = rest.split_once('"')?;
        text.push_str(inside);
        let Some(after) = left.strip_prefix('"') else { return Some((text, left)) };
        text.push('"');
        rest = after;
    }
}

/// The name before a colon, unless the colon is part of a text such as `std::fs`, `http://x` or `12:30`.
fn filter_name(text: &str) -> Option<String> {
    let end = text.find(|next: char| !next.is_ascii_alphabetic())?;
    let (name, rest) = text.split_at(end);
    let value = rest.strip_prefix(':')?;
    let is_text = value.starts_with([':', '/', '\\']) && !name.eq_ignore_ascii_case("project");
    let name = name.to_ascii_lowercase();
    (!name.is_empty() && !is_text && meant(&name).is_some()).then_some(name)
}

/// The filter with this name, or with a name that is one letter different.
fn meant(name: &str) -> Option<&'static str> {
    let known = FILTERS.iter().map(|(filter, _)| *filter);
    let mut close = known.filter(|filter| filter.len() > 2 || *filter == name);
    close.find(|filter| *filter == name || one_apart(name, filter))
}

/// Whether one letter was left out, added or exchanged.
fn one_apart(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let same = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    let tail = |bytes: &[u8], skip: usize| bytes.get(same + skip..).map(<[u8]>::to_vec);
    match left.len().cmp(&right.len()) {
        std::cmp::Ordering::Equal => tail(left, 1) == tail(right, 1),
        std::cmp::Ordering::Less => {
            right.len() - left.len() == 1 && tail(left, 0) == tail(right, 1)
        }
        std::cmp::Ordering::Greater => {
            left.len() - right.len() == 1 && tail(left, 1) == tail(right, 0)
        }
    }
}

fn add(query: &mut Query, item: Item, now_ms: i64) -> Result<(), QueryError> {
    let Some(name) = &item.name else {
        if let Some(phrase) = phrase_of(&item.text, item.is_quoted)? {
            let list = if item.is_negated { &mut query.unwanted } else { &mut query.wanted };
            list.push(phrase);
        }
        return Ok(());
    };
    let Some((filter, example)) = FILTERS.iter().find(|(filter, _)| filter == name) else {
        let meant = meant(name).unwrap_or("role");
        return Err(QueryError::UnknownFilter { given: name.clone(), meant });
    };
    if item.text.is_empty() {
        return Err(QueryError::NoValue { filter, example });
    }
    add_filter(query, filter, &item, now_ms)
}

fn add_filter(
    query: &mut Query,
    filter: &'static str,
    item: &Item,
    now_ms: i64,
) -> Result<(), QueryError> {
    let filters = &mut query.filters;
    let text = item.text.as_str();
    if item.is_negated && !matches!(filter, "role" | "tool" | "model" | "agent") {
        return Err(QueryError::NotNegatable { filter });
    }
    let time = || begin_of_date(text, now_ms).ok_or_else(|| bad(filter, text, DATES));
    match filter {
        "role" if item.is_negated => filters.not_roles.push(role(text)?),
        "role" => filters.roles.push(role(text)?),
        "after" => once(filter, &mut filters.after_ms, time()?)?,
        "before" => once(filter, &mut filters.before_ms, time()?)?,
        "session" => once(filter, &mut filters.session, text.to_owned())?,
        "project" => once(filter, &mut filters.project, text.to_owned())?,
        "is" if text.eq_ignore_ascii_case("old") => filters.is_old = true,
        "is" => filters.kinds.push(kind(text)?),
        _ => {
            let of = match filter {
                "tool" => NameKind::Tool,
                "model" => NameKind::Model,
                _ => NameKind::Agent,
            };
            let phrase = phrase_of(text, item.is_quoted)?;
            let phrase = phrase.ok_or_else(|| bad(filter, text, "a name with letters"))?;
            filters.names.push(NameFilter { of, phrase, is_negated: item.is_negated });
        }
    }
    Ok(())
}

/// Sets a filter that takes one value: of two, one would be dropped without a word.
fn once<T>(filter: &'static str, slot: &mut Option<T>, value: T) -> Result<(), QueryError> {
    match slot.replace(value) {
        Some(_) => Err(QueryError::Twice { filter }),
        None => Ok(()),
    }
}

const DATES: &str = "a date such as 2026-10-01 or 2026-10, a time such as 2026-10-01T12:30, `today`, \
                     `yesterday`, or how long ago such as 3d, 2w, 12h";

fn bad(filter: &'static str, given: &str, expected: &str) -> QueryError {
    QueryError::BadValue { filter, given: given.to_owned(), expected: expected.to_owned() }
}

fn role(text: &str) -> Result<Role, QueryError> {
    match text.to_ascii_lowercase().as_str() {
        "user" | "human" => Ok(Role::User),
        "assistant" | "model" => Ok(Role::Assistant),
        "function_result" | "tool" => Ok(Role::FunctionResult),
        "custom" => Ok(Role::Custom),
        _ => Err(bad("role", text, "user, assistant, tool or custom")),
    }
}

fn kind(text: &str) -> Result<FieldKind, QueryError> {
    let mut all = FieldKind::ALL.into_iter();
    all.find(|kind| kind.as_str().eq_ignore_ascii_case(text)).ok_or_else(|| {
        let names: Vec<&str> = FieldKind::ALL.iter().map(|kind| kind.as_str()).collect();
        bad("is", text, &format!("{} or old", names.join(", ")))
    })
}

/// The words of a phrase; `None` when it has none, such as `->`.
fn phrase_of(text: &str, is_quoted: bool) -> Result<Option<Phrase>, QueryError> {
    let mut words = Vec::new();
    tokenize(text, |token| add_token(&mut words, &token));
    let mut words: Vec<Word> = words.into_iter().map(|(_, word)| word).collect();
    let asks_prefix = !is_quoted && text.ends_with('*');
    let is_gram = words.last_mut().is_some_and(cut_tail);
    if words.iter().map(|word| word.parts.len()).sum::<usize>() > PHRASE_TERMS_MAX {
        return Err(QueryError::TooLong);
    }
    let last = words.last().and_then(|last| last.whole.as_ref());
    if asks_prefix && last.is_some_and(|last| last.chars().count() < PREFIX_CHARS_MIN) {
        return Err(QueryError::ShortPrefix { given: text.to_owned() });
    }
    let is_prefix = asks_prefix || is_gram;
    Ok((!words.is_empty()).then_some(Phrase { words, is_prefix }))
}

/// Adds a token to the words before it, each with its place in the text. Characters of a script without spaces are a word as
/// far as nothing separates them: the terms of each overlap the one before.
fn add_token(words: &mut Vec<(Range<usize>, Word)>, token: &Token<'_>) {
    let (term, place) = (token.term.to_owned(), token.range.clone());
    match (token.kind, words.last_mut()) {
        (TokenKind::Gram, Some((run, last))) if last.whole.is_none() && place.start < run.end => {
            run.end = place.end;
            last.parts.push(term);
        }
        (TokenKind::Gram, _) => words.push((place, Word { parts: vec![term], whole: None })),
        (TokenKind::Part, _) => {
            words.push((place, Word { parts: vec![term.clone()], whole: Some(term) }));
        }
        (TokenKind::Whole, _) => {
            // The parts came just before.
            let first = words.partition_point(|(part, _)| part.start < place.start);
            let parts = words.drain(first..).flat_map(|(_, word)| word.parts).collect();
            words.push((place, Word { parts, whole: Some(term) }));
        }
    }
}

/// Drops the last terms of characters at the end of a query: they have fewer characters than a term of the index and are
/// covered by the terms before them. Returns whether the last remaining term is a prefix.
fn cut_tail(last: &mut Word) -> bool {
    let is_short = |term: &String| term.chars().count() < GRAM_CHARS;
    while last.whole.is_none() && last.parts.len() > 1 && last.parts.last().is_some_and(is_short) {
        last.parts.pop();
    }
    last.whole.is_none() && last.parts.last().is_some_and(is_short)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_794_830_400_000;

    fn read(text: &str) -> Query {
        parse_query(text, NOW).unwrap()
    }

    fn parts(phrase: &Phrase) -> String {
        let parts = phrase.words.iter().flat_map(|word| word.parts.iter().cloned());
        parts.collect::<Vec<_>>().join(" ")
    }

    fn terms(phrases: &[Phrase]) -> Vec<String> {
        phrases.iter().map(parts).collect()
    }

    #[test]
    fn words_phrases_and_negations() {
        let query = read(r#"flaky "connection reset" -windows -"not this" src/main.rs"#);
        assert_eq!(terms(&query.wanted), ["flaky", "connection reset", "src main rs"]);
        assert_eq!(terms(&query.unwanted), ["windows", "not this"]);
    }

    #[test]
    fn identifiers_are_looked_for_in_parts_and_whole() {
        let query = read("parseConfig snake_case par* --force std::fs");
        assert_eq!(query.wanted[0].words[0].whole.as_deref(), Some("parseconfig"));
        assert_eq!(terms(&query.wanted), ["parse config", "snake case", "par", "force", "std fs"]);
        assert!(query.wanted[2].is_prefix && !query.wanted[1].is_prefix);
        assert!(query.unwanted.is_empty());
    }

    #[test]
    fn short_queries_of_unspaced_scripts_are_prefixes() {
        let of = |text: &str| {
            let phrase = read(text).wanted.remove(0);
            (parts(&phrase), phrase.is_prefix)
        };
        assert_eq!(of("\u{672c}"), ("\u{672c}".to_owned(), true));
        assert_eq!(of("\u{65e5}\u{672c}"), ("\u{65e5}\u{672c}".to_owned(), true));
        assert_eq!(of("\u{65e5}\u{672c}\u{8a9e}"), ("\u{65e5}\u{672c}\u{8a9e}".to_owned(), false));
        assert_eq!(
            of("\u{65e5}\u{672c}\u{8a9e}\u{7248}"),
            ("\u{65e5}\u{672c}\u{8a9e} \u{672c}\u{8a9e}\u{7248}".to_owned(), false)
        );
        assert_eq!(
            of("\u{4f7f}\u{7528}Rust"),
            ("\u{4f7f}\u{7528} \u{7528} rust".to_owned(), false)
        );
        assert_eq!(of("Rust\u{8bed}"), ("rust \u{8bed}".to_owned(), true));
        // Only the end of the last word is covered by terms before it.
        assert_eq!(of("\"한국 말\""), ("한국 국 말".to_owned(), true));
        assert_eq!(of("\"저는 나 학생입니다\"").0, "저는 는 나 학생입 생입니 입니다");
    }

    #[test]
    fn filters_are_read() {
        let query = read(
            "role:user tool:bash -model:opus is:thinking is:old after:2026-10-01 before:today session:ab project:~/x agent:\"the main\"",
        );
        let filters = &query.filters;
        assert_eq!(filters.roles, [Role::User]);
        assert_eq!(filters.names.len(), 3);
        assert!(filters.names[1].is_negated);
        assert_eq!(filters.kinds, [FieldKind::Thinking]);
        assert!(filters.is_old && filters.after_ms < filters.before_ms);
        assert_eq!(filters.session.as_deref(), Some("ab"));
        assert_eq!(filters.project.as_deref(), Some("~/x"));
        assert!(query.wanted.is_empty());
    }

    #[test]
    fn a_quote_in_quotes_is_written_twice() {
        let query = read(r#"session:"a ""b""" "say ""hi"" now" "" x"#);
        assert_eq!(query.filters.session.as_deref(), Some(r#"a "b""#));
        assert_eq!(terms(&query.wanted), ["say hi now", "x"]);
        assert_eq!(parse_query(r#"x "a"""#, NOW), Err(QueryError::OpenQuote));
    }

    #[test]
    fn colons_in_text_are_text() {
        for text in ["http://host/x", "std::fs", "12:30", "TypeError: x", "C:\\x", "error:E0308"] {
            assert_eq!(read(text).filters, crate::query::Filters::default(), "{text}");
        }
    }

    #[test]
    fn errors_say_what_to_write() {
        let of = |text: &str| parse_query(text, NOW).unwrap_err();
        assert_eq!(of("  -> "), QueryError::Empty);
        assert_eq!(of("-x"), QueryError::OnlyNegated);
        assert_eq!(of("\"open"), QueryError::OpenQuote);
        let UnknownFilter { given, meant } = of("rol:user") else { panic!() };
        assert_eq!((given.as_str(), meant), ("rol", "role"));
        assert!(matches!(of("role:"), QueryError::NoValue { filter: "role", .. }));
        assert!(matches!(of("role:nobody"), QueryError::BadValue { filter: "role", .. }));
        assert!(matches!(of("after:soon"), QueryError::BadValue { filter: "after", .. }));
        assert!(matches!(of("x -is:title"), QueryError::NotNegatable { filter: "is" }));
        for filter in ["session", "project", "after", "before"] {
            let twice = format!("{filter}:2026 x {filter}:2027");
            assert_eq!(of(&twice), QueryError::Twice { filter });
        }
        assert_eq!(of(&"x ".repeat(40)), QueryError::TooLong);
        for given in ["a*", "src/m*"] {
            let short = QueryError::ShortPrefix { given: given.to_owned() };
            assert_eq!([of(given), of(&format!("tool:{given}"))], [short.clone(), short]);
        }
        assert!(of("x a*").to_string().contains("at least 2 letters"));
        assert!(read("ab* fooB* \u{672c}*").wanted.iter().all(|phrase| phrase.is_prefix));
        use QueryError::UnknownFilter;
    }
}
