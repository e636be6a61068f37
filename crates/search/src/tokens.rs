//! The tokenizer, the same for documents and for queries.
//!
//! A text becomes a row of terms, each at a position:
//!
//! - A word is a run of letters, digits and combining marks, folded for case and normalised (NFKC). Everything else
//!   separates words, so that `src/main.rs` is `src`, `main`, `rs` and `snake_case` is `snake`, `case`.
//! - A word in camel case is the row of its parts, and also one term that has no position: `parseConfig` is `parse`, `config`, and
//!   `parseconfig` beside them.
//! - A run of a script that is written without spaces has a term at every character: that character and the two after it. A query
//!   of one or two characters is a prefix of such a term.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use crate::limits::{GRAM_CHARS, SPLIT_BYTES_MAX, TERM_BYTES_MAX};

/// The kind of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A word, or a part of one. It has the position after the one before it.
    Part,
    /// Characters of a script without spaces. It has the position after the one before it.
    Gram,
    /// A word whose parts came just before. It has no position.
    Whole,
}

/// A term and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// The term, folded.
    pub term: &'a str,
    /// Where it is in the text, in bytes.
    pub range: Range<usize>,
    /// The kind of the term.
    pub kind: TokenKind,
}

/// Hands every token of a text to `each`, in order.
pub fn tokenize(text: &str, mut each: impl FnMut(Token<'_>)) {
    let mut buffer = String::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, first)) = rest.next() {
        let class = class_of(first);
        if class == Class::Separator {
            continue;
        }
        let mut end = start + first.len_utf8();
        while let Some((at, next)) = rest.next_if(|(_, next)| continues(class, *next)) {
            end = at + next.len_utf8();
        }
        let run = text.get(start..end).unwrap_or_default();
        match class {
            Class::Gram => grams(run, start, &mut buffer, &mut each),
            _ => word(run, start, &mut buffer, &mut each),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Word,
    Gram,
    Separator,
}

fn class_of(character: char) -> Class {
    match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' => Class::Word,
        '\0'..='\u{7f}' => Class::Separator,
        _ if is_unspaced(character) => Class::Gram,
        _ if character.is_alphanumeric() || is_mark(character) => Class::Word,
        _ => Class::Separator,
    }
}

fn continues(class: Class, next: char) -> bool {
    // A mark belongs to the character before it, whatever that is.
    class_of(next) == class || (class == Class::Gram && is_mark(next))
}

/// Scripts that are written without spaces between words, and Hangul, whose words carry their particles.
const fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{0e00}'..='\u{0eff}'       // Thai, Lao
        | '\u{1000}'..='\u{109f}'     // Myanmar
        | '\u{1100}'..='\u{11ff}'     // Hangul letters
        | '\u{1780}'..='\u{17ff}'     // Khmer
        | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' // Hiragana, Katakana
        | '\u{3105}'..='\u{318f}'     // Bopomofo, Hangul letters
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' // Han
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7ff}'     // Hangul
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ffdc}'     // half-width Katakana and Hangul
        | '\u{20000}'..='\u{3ffff}')
}

/// Marks that follow a letter and are no letters by themselves.
const fn is_mark(character: char) -> bool {
    matches!(character,
        '\u{0300}'..='\u{036f}' | '\u{0483}'..='\u{0489}' | '\u{0591}'..='\u{05bd}'
        | '\u{0610}'..='\u{061a}' | '\u{064b}'..='\u{065f}' | '\u{0900}'..='\u{0903}'
        | '\u{093a}'..='\u{094f}' | '\u{0951}'..='\u{0957}' | '\u{0981}'..='\u{0983}'
        | '\u{09bc}'..='\u{09cd}' | '\u{0a01}'..='\u{0a03}' | '\u{0a3c}'..='\u{0a4d}'
        | '\u{0a81}'..='\u{0a83}' | '\u{0abc}'..='\u{0acd}' | '\u{0b01}'..='\u{0b03}'
        | '\u{0b3c}'..='\u{0b4d}' | '\u{0bbe}'..='\u{0bcd}' | '\u{0c00}'..='\u{0c04}'
        | '\u{0c3c}'..='\u{0c4d}' | '\u{0c81}'..='\u{0c83}' | '\u{0cbc}'..='\u{0ccd}'
        | '\u{0d00}'..='\u{0d03}' | '\u{0d3b}'..='\u{0d4d}' | '\u{0dca}'..='\u{0ddf}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{3099}'..='\u{309a}' | '\u{fe20}'..='\u{fe2f}')
}

fn grams(run: &str, start: usize, buffer: &mut String, each: &mut impl FnMut(Token<'_>)) {
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).collect();
    for (place, from) in starts.iter().copied().enumerate() {
        let to = starts.get(place + GRAM_CHARS).copied().unwrap_or(run.len());
        fold_into(run.get(from..to).unwrap_or_default(), buffer);
        let range = start + from..start + to;
        each(Token { term: buffer, range, kind: TokenKind::Gram });
    }
}

fn word(run: &str, start: usize, buffer: &mut String, each: &mut impl FnMut(Token<'_>)) {
    let mut from = 0;
    if run.len() <= SPLIT_BYTES_MAX {
        for cut in camel_cuts(run) {
            fold_into(run.get(from..cut).unwrap_or_default(), buffer);
            each(Token { term: buffer, range: start + from..start + cut, kind: TokenKind::Part });
            from = cut;
        }
    }
    fold_into(run.get(from..).unwrap_or_default(), buffer);
    let end = start + run.len();
    each(Token { term: buffer, range: start + from..end, kind: TokenKind::Part });
    if from > 0 {
        fold_into(run, buffer);
        each(Token { term: buffer, range: start..end, kind: TokenKind::Whole });
    }
}

/// Where a word in camel case is cut: `parse|Config`, `HTTP|Server`, `http2|Server`.
fn camel_cuts(run: &str) -> impl Iterator<Item = usize> {
    let mut before: Option<char> = None;
    let mut rest = run.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (at, this) = rest.next()?;
            let last = before.replace(this);
            let is_cut = this.is_uppercase()
                && last.is_some_and(|last| {
                    let mut begins_word =
                        || rest.peek().is_some_and(|(_, next)| next.is_lowercase());
                    last.is_lowercase()
                        || ((last.is_uppercase() || last.is_numeric()) && begins_word())
                });
            if is_cut {
                return Some(at);
            }
        }
    })
}

/// Folds for case, normalises, and cuts to [`TERM_BYTES_MAX`].
fn fold_into(word: &str, buffer: &mut String) {
    buffer.clear();
    if word.is_ascii() {
        let kept = word.get(..word.len().min(TERM_BYTES_MAX)).unwrap_or_default();
        buffer.extend(kept.chars().map(|character| character.to_ascii_lowercase()));
        return;
    }
    // Upper case first, so that a sharp s equals `ss`, and both forms of the small sigma are equal. Lowering a dotted
    // capital I leaves a dot over, which is dropped.
    let folded = word.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    for character in folded.filter(|character| *character != '\u{307}') {
        if buffer.len() + character.len_utf8() > TERM_BYTES_MAX {
            break;
        }
        // Some compatibility forms become signs, which the index would take for the end of the
        // term.
        if !character.is_ascii() || character.is_ascii_alphanumeric() {
            buffer.push(character);
        }
    }
}

/// The terms of a text that have positions, in order.
#[must_use]
pub fn parts(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    tokenize(text, |token| {
        if token.kind != TokenKind::Whole && !token.term.is_empty() {
            terms.push(token.term.to_owned());
        }
    });
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        tokenize(text, |token| terms.push(token.term.to_owned()));
        terms
    }

    #[test]
    fn identifiers_are_found_in_parts_and_whole() {
        assert_eq!(all("parseConfigFile"), ["parse", "config", "file", "parseconfigfile"]);
        assert_eq!(all("parse_config-file.rs"), ["parse", "config", "file", "rs"]);
        assert_eq!(all("HTTPServer2"), ["http", "server2", "httpserver2"]);
        assert_eq!(all("http2Server"), ["http2", "server", "http2server"]);
        assert_eq!(all("/usr/lib/libFoo.so.1"), ["usr", "lib", "lib", "foo", "libfoo", "so", "1"]);
        assert_eq!(all("SHA256 DEADBEEF 4F2A"), ["sha256", "deadbeef", "4f2a"]);
        assert_eq!(all("error[E0308]: mismatched"), ["error", "e0308", "mismatched"]);
    }

    #[test]
    fn words_of_any_language_are_folded() {
        assert_eq!(all("Straße STRASSE"), ["strasse", "strasse"]);
        assert_eq!(all("ΣΊΣΥΦΟΣ Σίσυφος"), ["σίσυφοσ", "σίσυφοσ"]);
        assert_eq!(all("Ünïcödé cafe\u{301}"), ["ünïcödé", "café"]);
        assert_eq!(all("İstanbul istanbul"), ["istanbul", "istanbul"]);
        assert_eq!(all("Привет МИР"), ["привет", "мир"]);
        assert_eq!(all("नमस्ते दुनिया"), ["नमस्ते", "दुनिया"]);
        assert_eq!(all("ｆｕｌｌ"), ["full"]);
    }

    #[test]
    fn scripts_without_spaces_have_a_term_at_every_character() {
        assert_eq!(all("日本語版"), ["日本語", "本語版", "語版", "版"]);
        assert_eq!(all("使用Rust"), ["使用", "用", "rust"]);
        assert_eq!(all("한국어"), ["한국어", "국어", "어"]);
    }

    #[test]
    fn encoded_data_is_one_short_term() {
        let blob = "aB".repeat(500);
        let terms = all(&blob);
        assert_eq!(terms.len(), 1);
        assert_eq!(terms[0].len(), TERM_BYTES_MAX);
    }

    #[test]
    fn ranges_are_those_of_the_text() {
        let text = "é fooBar 世界";
        let mut found = Vec::new();
        tokenize(text, |token| found.push(text[token.range].to_owned()));
        assert_eq!(found, ["é", "foo", "Bar", "fooBar", "世界", "界"]);
    }

    proptest::proptest! {
        #[test]
        fn terms_hold_nothing_that_separates(text in "\\PC{0,60}") {
            tokenize(&text, |token| {
                assert!(token.term.chars().all(|c| !c.is_ascii() || c.is_ascii_alphanumeric()));
                assert!(token.term.len() <= TERM_BYTES_MAX);
                assert!(text.get(token.range).is_some());
            });
        }
    }
}
