//! Whether a query matches a document, and where.

use std::ops::Range;

use crate::document::Document;
use crate::query::{NameFilter, NameKind, Phrase, Query};
use crate::tokens::{TokenKind, tokenize};

/// Where the words of a query are in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// The places, in order: the number of the field, and the range of its text in bytes.
    pub spans: Vec<(usize, Range<usize>)>,
}

/// The terms of a text, with their places.
struct Terms {
    /// All terms one after the other.
    buffer: String,
    /// Those with positions: where each is in the buffer, and in the text.
    parts: Vec<(Range<usize>, Range<usize>)>,
    /// Words in camel case as one term.
    wholes: Vec<(Range<usize>, Range<usize>)>,
}

impl Terms {
    fn of(text: &str) -> Self {
        let mut terms = Self { buffer: String::new(), parts: Vec::new(), wholes: Vec::new() };
        tokenize(text, |token| {
            let start = terms.buffer.len();
            terms.buffer.push_str(token.term);
            let place = (start..terms.buffer.len(), token.range);
            match token.kind {
                TokenKind::Whole => terms.wholes.push(place),
                TokenKind::Part | TokenKind::Gram => terms.parts.push(place),
            }
        });
        terms
    }

    fn term(&self, place: &Range<usize>) -> &str {
        self.buffer.get(place.clone()).unwrap_or_default()
    }

    /// Where a phrase ends whose last term is found here. If that term is a prefix, only the prefix
    /// is shown.
    fn end_of(&self, last: &(Range<usize>, Range<usize>), phrase: &Phrase) -> usize {
        let wanted = phrase.terms.last().map_or(0, String::len);
        let is_as_written = last.0.len() == last.1.len();
        match phrase.is_prefix && is_as_written {
            true => last.1.start + wanted,
            false => last.1.end,
        }
    }

    /// Every place of a phrase, in bytes of the text.
    fn places(&self, phrase: &Phrase) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for window in self.parts.windows(phrase.terms.len()) {
            let fits = window.iter().zip(&phrase.terms).enumerate().all(|(at, (part, wanted))| {
                let is_last = at + 1 == phrase.terms.len();
                is_term(self.term(&part.0), wanted, phrase.is_prefix && is_last)
            });
            if let (true, Some(first), Some(last)) = (fits, window.first(), window.last()) {
                found.push(first.1.start..self.end_of(last, phrase));
            }
        }
        let one = match phrase.terms.as_slice() {
            [only] => Some(only),
            _ => phrase.whole.as_ref(),
        };
        for (term, place) in &self.wholes {
            if one.is_some_and(|one| is_term(self.term(term), one, phrase.is_prefix)) {
                found.push(place.clone());
            }
        }
        found
    }
}

fn is_term(term: &str, wanted: &str, is_prefix: bool) -> bool {
    if is_prefix { term.starts_with(wanted) } else { term == wanted }
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
mod tests {
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
        assert_eq!(spans("bar -foo", "fooBar"), [""; 0]);
    }
}
