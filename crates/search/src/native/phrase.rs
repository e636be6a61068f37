//! Words and phrases as expressions of FTS5.
//!
//! A word in camel case is in the index by its parts, in order, and as one term after them, which has a mark of its own.
//! A phrase may be in a text by such a term, and then its words do not follow each other in the index. So an expression
//! takes more documents than have the phrase, and the caller compares them; the mark keeps them few.

use super::expression::SIGN;
use crate::limits::PREFIX_CHARS_MIN;
use crate::query::{Phrase, Word};

/// The character after the sign, for words in camel case as one term.
const WHOLE: char = 'w';

/// The beginning of the terms for words in camel case, after the mark that the parts have.
pub(super) fn whole_mark(mark: &str) -> String {
    format!("{mark}{SIGN}{WHOLE}")
}

/// Matches every document that has a phrase. Terms begin with `mark`.
pub(super) fn phrase(mark: &str, phrase: &Phrase) -> String {
    let count = phrase.words.len();
    let words = phrase.words.iter().enumerate();
    let words = words.map(|(number, word)| (word, phrase.is_prefix && number + 1 == count));
    let each: Vec<String> = words.clone().map(|(each, star)| word(mark, each, star)).collect();
    let all = each.join(" AND ");
    let is_camel = |word: &Word| word.whole.is_some() && word.parts.len() > 1;
    if count == 1 || phrase.words.iter().any(is_camel) {
        return format!("({all})");
    }
    let together = together(mark, &phrase.words, phrase.is_prefix);
    let whole = whole_mark(mark);
    let wholes = words.filter_map(|(word, star)| Some(term(&whole, word.whole.as_ref()?, star)));
    let wholes: Vec<String> = wholes.collect();
    match wholes.is_empty() {
        true => together,
        false => format!("({together} OR (({}) AND {all}))", wholes.join(" OR ")),
    }
}

/// Matches only documents that have a phrase, for exclusions; `None` when the caller has to compare.
pub(super) fn excluded(mark: &str, phrase: &Phrase) -> Option<String> {
    let [only] = phrase.words.as_slice() else { return None };
    match (&only.whole, only.parts.as_slice()) {
        (Some(whole), _) => Some(one_term(mark, whole, phrase.is_prefix)),
        (None, [part]) => Some(term(mark, part, phrase.is_prefix)),
        (None, _) => None,
    }
}

/// Matches documents by which a phrase is ranked. Reading every document of each word of a phrase would take longer than
/// the search, so its words count together.
pub(super) fn ranked(phrase: &Phrase) -> String {
    match phrase.words.as_slice() {
        [only] => word("", only, phrase.is_prefix),
        words => together("", words, phrase.is_prefix),
    }
}

/// Words that follow each other, by their parts.
pub(super) fn together<'a>(
    mark: &str,
    words: impl IntoIterator<Item = &'a Word>,
    is_prefix: bool,
) -> String {
    row(mark, words.into_iter().flat_map(|word| &word.parts), is_prefix)
}

/// A word by its parts, by a part that is the whole word, or by a word in camel case.
fn word(mark: &str, word: &Word, is_prefix: bool) -> String {
    let Some(whole) = &word.whole else { return row(mark, &word.parts, is_prefix) };
    let by_whole = one_term(mark, whole, is_prefix);
    let is_short = |part: &&String| part.chars().count() < PREFIX_CHARS_MIN;
    let by_parts = match word.parts.split_last() {
        None | Some((_, [])) => return by_whole,
        // So many words begin with one letter that reading them takes longer than comparing what has the other parts.
        Some((last, others)) if is_prefix && is_short(&last) => row(mark, others, false),
        Some(_) => row(mark, &word.parts, is_prefix),
    };
    format!("({by_parts} OR {by_whole})")
}

fn one_term(mark: &str, whole: &str, is_prefix: bool) -> String {
    let camel = term(&whole_mark(mark), whole, is_prefix);
    format!("({} OR {camel})", term(mark, whole, is_prefix))
}

fn term(mark: &str, term: &str, is_prefix: bool) -> String {
    row(mark, [term], is_prefix)
}

/// Terms that follow each other.
fn row(mark: &str, terms: impl IntoIterator<Item = impl AsRef<str>>, is_prefix: bool) -> String {
    let marked = terms.into_iter().map(|term| format!("{mark}{}", term.as_ref()));
    let star = if is_prefix { " *" } else { "" };
    format!("\"{}\"{star}", marked.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::conformance::finds;
    use crate::matching::tests::text_and_phrase;
    use crate::native::NativeIndex;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_index_finds_words_in_any_case((text, phrase) in text_and_phrase()) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let index = NativeIndex::in_memory().unwrap();
            let is_found = runtime.block_on(finds(&index, &text, &phrase));
            prop_assert!(is_found, "{} in {}", phrase, text);
        }
    }
}
