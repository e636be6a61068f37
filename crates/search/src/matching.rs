//! Whether a query matches a document, and where.

use std::ops::Range;

use crate::document::Document;
use crate::query::{NameFilter, NameKind, Phrase, Query, Word};
use crate::tokens::{TokenKind, tokenize};

/// Where the words of a query are in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// The places, in order: the number of the field, and the range of its text in bytes.
    pub spans: Vec<(usize, Range<usize>)>,
}

/// A term of a text.
struct Term {
    /// Where it is in the buffer of all terms.
    term: Range<usize>,
    /// Where it is in the text.
    place: Range<usize>,
}

/// A word in camel case as one term.
struct Whole {
    term: Term,
    /// Its parts, by their numbers.
    parts: Range<usize>,
}

/// The terms of a text, with their places.
struct Terms {
    /// All terms one after the other.
    buffer: String,
    /// Those with positions.
    parts: Vec<Term>,
    /// Words in camel case, in order.
    wholes: Vec<Whole>,
}

/// Where a word that was found ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    /// The number of the part after it.
    next: usize,
    /// The byte of the text after what is shown of it.
    byte: usize,
}

impl Terms {
    fn of(text: &str) -> Self {
        let mut terms = Self { buffer: String::new(), parts: Vec::new(), wholes: Vec::new() };
        tokenize(text, |token| {
            let start = terms.buffer.len();
            terms.buffer.push_str(token.term);
            let term = Term { term: start..terms.buffer.len(), place: token.range };
            match token.kind {
                TokenKind::Whole => {
                    let from = term.place.start;
                    let first = terms.parts.partition_point(|part| part.place.start < from);
                    terms.wholes.push(Whole { term, parts: first..terms.parts.len() });
                }
                TokenKind::Part | TokenKind::Gram => terms.parts.push(term),
            }
        });
        terms
    }

    /// The byte after a term, if it is the wanted one. Of a word that begins with a wanted prefix, only the prefix is shown.
    fn end_of(&self, found: &Term, wanted: &str, is_prefix: bool) -> Option<usize> {
        let term = self.buffer.get(found.term.clone()).unwrap_or_default();
        let is_as_written = term.len() == found.place.len();
        match is_prefix {
            true if !term.starts_with(wanted) => None,
            true if is_as_written => Some(found.place.start + wanted.len()),
            false if term != wanted => None,
            _ => Some(found.place.end),
        }
    }

    /// Where a word ends that begins at a part: by its parts, by a part that is the whole word, by a word in camel case.
    fn ends_of(&self, word: &Word, at: usize, is_prefix: bool) -> [Option<End>; 3] {
        let end = |byte: Option<usize>, next| byte.map(|byte| End { next, byte });
        let by_parts = end(self.end_of_parts(word, at, is_prefix), at + word.parts.len());
        let Some(whole) = &word.whole else { return [by_parts, None, None] };
        let part = self.parts.get(at).and_then(|part| self.end_of(part, whole, is_prefix));
        let camel = self.wholes.binary_search_by_key(&at, |camel| camel.parts.start);
        let by_camel = camel
            .ok()
            .and_then(|number| self.wholes.get(number))
            .and_then(|camel| end(self.end_of(&camel.term, whole, is_prefix), camel.parts.end));
        [by_parts, end(part, at + 1), by_camel]
    }

    fn end_of_parts(&self, word: &Word, at: usize, is_prefix: bool) -> Option<usize> {
        let found = self.parts.get(at..at + word.parts.len())?;
        let mut byte = None;
        for (number, (part, wanted)) in found.iter().zip(&word.parts).enumerate() {
            let is_last = number + 1 == word.parts.len();
            byte = Some(self.end_of(part, wanted, is_prefix && is_last)?);
        }
        byte
    }

    /// Where a phrase ends that begins at a part.
    fn end_of_phrase(&self, phrase: &Phrase, at: usize) -> Option<usize> {
        let (first, rest) = phrase.words.split_first()?;
        let first_ends = self.ends_of(first, at, phrase.is_prefix && rest.is_empty());
        let mut ends: Vec<End> = first_ends.into_iter().flatten().collect();
        for (number, word) in rest.iter().enumerate() {
            let is_prefix = phrase.is_prefix && number + 1 == rest.len();
            let next = ends.iter().flat_map(|end| self.ends_of(word, end.next, is_prefix));
            ends = next.flatten().collect();
            ends.sort_unstable();
            ends.dedup();
        }
        ends.iter().map(|end| end.byte).max()
    }

    /// Every place of a phrase, in bytes of the text.
    fn places(&self, phrase: &Phrase) -> Vec<Range<usize>> {
        let starts = self.parts.iter().enumerate();
        let found = starts.filter_map(|(at, part)| {
            self.end_of_phrase(phrase, at).map(|end| part.place.start..end)
        });
        found.collect()
    }
}

impl Phrase {
    /// Whether a text has the phrase.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        !Terms::of(text).places(self).is_empty()
    }
}

impl Query {
    /// Where the words are in a document, if the whole query matches it. The caller compares session and project.
    #[must_use]
    pub fn matches(&self, document: &Document) -> Option<Matched> {
        if !self.filters_fit(document) {
            return None;
        }
        let fields = document.fields.iter().enumerate();
        let fields: Vec<(usize, Terms)> = fields
            .filter(|(_, field)| self.looks_into(field.kind))
            .map(|(number, field)| (number, Terms::of(&field.text)))
            .collect();
        let is_in =
            |phrase: &Phrase| fields.iter().any(|(_, terms)| !terms.places(phrase).is_empty());
        if fields.is_empty() || self.unwanted.iter().any(is_in) {
            return None;
        }
        let mut matched = Matched::default();
        for phrase in &self.wanted {
            let before = matched.spans.len();
            for (number, terms) in &fields {
                matched.spans.extend(terms.places(phrase).into_iter().map(|at| (*number, at)));
            }
            if matched.spans.len() == before {
                return None;
            }
        }
        matched.spans.sort_by_key(|(number, at)| (*number, at.start, at.end));
        Some(matched)
    }

    fn filters_fit(&self, document: &Document) -> bool {
        let filters = &self.filters;
        let speaks = |roles: &[_]| document.role.is_some_and(|role| roles.contains(&role));
        filters.is_old == document.old_revision.is_some()
            && (filters.roles.is_empty() || speaks(&filters.roles))
            && !speaks(&filters.not_roles)
            && filters.after_ms.is_none_or(|after| document.at_ms >= after)
            && filters.before_ms.is_none_or(|before| document.at_ms < before)
            && filters.names.iter().all(|filter| filter.fits(document))
    }
}

impl NameFilter {
    fn fits(&self, document: &Document) -> bool {
        let has = |name: &String| self.phrase.is_in(name);
        let found = match self.of {
            NameKind::Tool => document.tools.iter().any(has),
            NameKind::Model => document.model.as_ref().is_some_and(has),
            NameKind::Agent => document.agent.as_ref().is_some_and(has),
        };
        found != self.is_negated
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::document::{Field, FieldKind};
    use crate::query::parse_query;

    fn spans(query: &str, text: &str) -> Vec<String> {
        let fields = vec![Field { kind: FieldKind::Text, text: text.to_owned() }];
        let document = Document { fields, ..Document::default() };
        let matched = parse_query(query, 0).unwrap().matches(&document).unwrap_or_default();
        matched.spans.into_iter().map(|(_, at)| text[at].to_owned()).collect()
    }

    #[test]
    fn what_was_asked_for_is_shown_and_no_more() {
        assert_eq!(spans("本", "日本語版"), ["本"]);
        assert_eq!(spans("本語", "日本語版"), ["本語"]);
        assert_eq!(spans("日本語版", "日本語版"), ["日本語版"]);
        assert_eq!(spans("conf*", "the Config of it"), ["Conf"]);
        assert_eq!(spans("\"a b\"", "a, B a"), ["a, B"]);
        assert_eq!(spans("foobar", "a fooBar"), ["fooBar"]);
        assert_eq!(spans("foob*", "a fooBar"), ["fooB"]);
        assert_eq!(spans("bar -foo", "fooBar"), [""; 0]);
    }

    #[test]
    fn a_phrase_has_all_of_its_words_in_every_script() {
        assert_eq!(spans("\"한국 말\"", "한국 말 좋다"), ["한국 말"]);
        assert_eq!(spans("\"한국 말\"", "한국 말씀"), ["한국 말"]);
        assert_eq!(spans("\"日本 語\"", "日本、語版"), ["日本、語"]);
        for (query, text) in [
            ("\"한국 말\"", "한국어 좋아"),
            ("\"좋아 나\"", "한국어 좋아"),
            ("\"日本 語\"", "日本人"),
            ("\"日本 語\"", "日本人 語"),
            ("tool.日本:語", "tool.日本"),
        ] {
            assert_eq!(spans(query, text), [""; 0], "{query} in {text}");
        }
    }

    #[test]
    fn upper_and_lower_case_are_the_same() {
        for (query, text) in [
            ("GitHub", "github"),
            ("OpenAI", "OPENAI"),
            ("openai", "OpenAI"),
            ("collections::hashmap", "std::collections::HashMap"),
            ("userprofile.tsx", "userProfile.tsx"),
            ("\"referenceerror: foobar\"", "ReferenceError: fooBar"),
            ("\"ReferenceError: FooBar is\"", "REFERENCEERROR: FOOBAR is"),
            ("bAr", "fooBar"),
            ("GitHubAct*", "githubactions"),
        ] {
            assert_eq!(spans(query, text).len(), 1, "{query} in {text}");
        }
        assert_eq!(spans("\"HashMap collections\"", "collections::hashmap"), [""; 0]);
    }

    /// A text, and some of its words that follow each other as a phrase in random case.
    pub(crate) fn text_and_phrase() -> impl Strategy<Value = (String, String)> {
        let word = (
            "[a-zA-Z0-9\u{e9}\u{df}\u{3a3}\u{436}]{1,8}|[\u{65e5}\u{672c}\u{d55c}]{1,4}",
            "[ _.:]{1,2}",
        );
        let words = prop::collection::vec(word, 1..6);
        let bounds = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
        (words, bounds, prop::collection::vec(any::<bool>(), 60)).prop_map(
            |(words, (first, count), upper)| {
                let text_of = |words: &[(String, String)]| -> String {
                    words.iter().flat_map(|(word, gap)| [word.as_str(), gap.as_str()]).collect()
                };
                let rest = &words[first.index(words.len())..];
                let run = text_of(&rest[..=count.index(rest.len())]);
                let cased = run.chars().zip(upper).map(|(letter, is_upper)| match is_upper {
                    true => letter.to_uppercase().collect::<String>(),
                    false => letter.to_lowercase().collect(),
                });
                (text_of(&words), format!("\"{}\"", cased.collect::<String>()))
            },
        )
    }

    proptest! {
        #[test]
        fn words_in_any_case_are_found((text, phrase) in text_and_phrase()) {
            prop_assert!(!spans(&phrase, &text).is_empty(), "{} in {}", phrase, text);
        }
    }
}
