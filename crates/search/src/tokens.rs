//! The tokenizer, the same for documents and for queries.
//!
//! A text becomes a row of terms, each at a position:
//!
//! - A word is a run of letters, digits and combining marks, folded for case and normalised (NFKC). Latin letters lose
//!   their marks, so that an accent makes no difference. Everything else separates words, so that `src/main.rs` is `src`, `main`, `rs` and
//!   `snake_case` is `snake`, `case`.
//! - A word in camel case is the row of its parts, and also one term that has no position: `parseConfig` is `parse`, `config`, and
//!   `parseconfig` beside them.
//! - A run of a script that is written without spaces has a term at every character: that character and the two after it, as
//!   they are normalised. A query of one or two characters is a prefix of such a term.
//!
//! The terms of a text are the same in every normal form of Unicode.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, compose, is_combining_mark};

use crate::limits::{GRAM_CHARS, SPLIT_LETTERS_MAX, TERM_BYTES_MAX};

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
    // Letters that are nothing but signs in their normal form have no term.
    let mut each = |token: Token<'_>| match token.term {
        "" => {}
        _ => each(token),
    };
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
        // A mark belongs to the character before it, whatever that is.
        _ if is_mark(character) => Class::Separator,
        _ if is_unspaced(character) => Class::Gram,
        _ if character.is_alphanumeric() => Class::Word,
        _ => Class::Separator,
    }
}

fn continues(class: Class, next: char) -> bool {
    class_of(next) == class || is_mark(next)
}

/// Whether a character is a part of words.
pub(crate) fn is_of_word(character: char) -> bool {
    class_of(character) != Class::Separator || is_mark(character)
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

/// Marks that follow a character and are none by themselves. Those that choose how an emoji looks are not of a word.
fn is_mark(character: char) -> bool {
    !character.is_ascii()
        && is_combining_mark(character)
        && !matches!(character, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

fn grams(run: &str, start: usize, buffer: &mut String, each: &mut impl FnMut(Token<'_>)) {
    let characters = normalised(run);
    for (at, (_, first)) in characters.iter().enumerate() {
        let rest = characters.get(at..).unwrap_or_default();
        let window = rest.get(..GRAM_CHARS).unwrap_or(rest);
        buffer.clear();
        buffer.extend(window.iter().map(|(character, _)| *character));
        let end = window.last().map_or(first.end, |(_, last)| last.end);
        each(Token {
            term: buffer,
            range: start + first.start..start + end,
            kind: TokenKind::Gram,
        });
    }
}

/// The characters of a run in normal form, with their places. Characters that may become one, such as a kana and its mark or
/// the letters of a Hangul syllable, are normalised together.
fn normalised(run: &str) -> Vec<(char, Range<usize>)> {
    let mut characters = Vec::new();
    let mut group = 0..0;
    let mut last = None;
    for (at, next) in run.char_indices() {
        let joined = next.nfkd().next().and_then(|first| join(last?, first));
        if joined.is_none() {
            add_normalised(run, group, &mut characters);
            group = at..at;
        }
        last = joined.or_else(|| next.nfkc().last());
        group.end = at + next.len_utf8();
    }
    add_normalised(run, group, &mut characters);
    characters
}

/// The character that `next` changes when it follows `last`; `None` if it is one of its own.
fn join(last: char, next: char) -> Option<char> {
    compose(last, next).or_else(|| (canonical_combining_class(next) != 0).then_some(last))
}

fn add_normalised(run: &str, group: Range<usize>, characters: &mut Vec<(char, Range<usize>)>) {
    let text = run.get(group.clone()).unwrap_or_default();
    characters.extend(text.nfkc().filter(is_kept).map(|each| (each, group.clone())));
}

fn word(run: &str, start: usize, buffer: &mut String, each: &mut impl FnMut(Token<'_>)) {
    let mut from = 0;
    // A word of so few bytes need not be counted.
    if run.len() <= SPLIT_LETTERS_MAX || letters(run).nth(SPLIT_LETTERS_MAX).is_none() {
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
    let mut rest = letters(run).peekable();
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

/// The letters and digits of a word without their marks, and where each is: marks have no case.
fn letters(run: &str) -> impl Iterator<Item = (usize, char)> {
    let letters = run.char_indices().filter(|(_, next)| !is_mark(*next));
    letters.map(|(at, letter)| match letter.is_ascii() {
        true => (at, letter),
        false => (at, letter.nfd().next().unwrap_or(letter)),
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
    // Upper case first, so that a sharp s equals `ss`, and both forms of the small sigma are equal.
    let folded = word.nfkd().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    let mut is_after_latin = false;
    let unmarked = folded.filter(|character| {
        let is_mark = is_mark(*character);
        if !is_mark {
            is_after_latin = is_latin(*character);
        }
        !(is_mark && is_after_latin)
    });
    for character in unmarked.nfc().filter(is_kept) {
        if buffer.len() + character.len_utf8() > TERM_BYTES_MAX {
            break;
        }
        buffer.push(character);
    }
}

/// Latin letters in lower case without marks, and digits.
const fn is_latin(character: char) -> bool {
    matches!(character, 'a'..='z' | '0'..='9' | '\u{df}'..='\u{24f}')
}

/// Some compatibility forms become signs, which the index would take for the end of the term.
const fn is_kept(character: &char) -> bool {
    !character.is_ascii() || character.is_ascii_alphanumeric()
}

/// The terms of a text that have positions, in order.
#[must_use]
pub fn parts(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    tokenize(text, |token| {
        if token.kind != TokenKind::Whole {
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
        assert_eq!(
            all("Ünïcödé cafe\u{301} Ærø 1\u{fe0f}\u{20e3}"),
            ["unicode", "cafe", "ærø", "1"]
        );
        assert_eq!(all("й и\u{306} и"), ["й", "й", "и"]);
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
        assert_eq!(all("กำลัง")[0], "ก\u{e4d}\u{e32}");
    }

    #[test]
    fn every_normal_form_has_the_same_terms() {
        let text = "한국어 각각 ガギグ ばびぶ ﾊﾞﾋﾟ caféBar HTTPÉcole Ångström ΐota йод क़लम กำลัง ≠ \u{1025}\u{102e}";
        let nfc: String = text.nfc().collect();
        let nfd: String = text.nfd().collect();
        assert_ne!(nfc, nfd);
        assert_eq!(all(&nfc), all(&nfd));
        let long = format!("{}Bar", "\u{e9}".repeat(30));
        assert_eq!(all(&long), all(&long.nfd().collect::<String>()));
        assert_eq!(all("ﾊﾞﾋﾟ"), all("バピ"));
        let mut found = Vec::new();
        let syllables: String = "한국어말".nfd().collect();
        tokenize(&syllables, |token| found.push(syllables[token.range].nfc().collect::<String>()));
        assert_eq!(found, ["한국어", "국어말", "어말", "말"]);
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
                assert!((1..=TERM_BYTES_MAX).contains(&token.term.len()));
                assert!(text.get(token.range).is_some());
            });
        }

        #[test]
        fn normal_forms_of_any_text_have_the_same_terms(text in "[\\PC\u{1100}-\u{11ff}\u{3040}-\u{309f}\u{300}-\u{36f}]{0,20}") {
            let nfd: String = text.nfd().collect();
            let nfc: String = text.nfc().collect();
            proptest::prop_assert_eq!(all(&nfc), all(&nfd));
        }
    }
}
