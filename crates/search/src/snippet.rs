//! The part of a text that shows why a document matched.

use std::ops::Range;

use crate::document::{Document, FieldKind};
use crate::limits::{HIGHLIGHTS_MAX, SNIPPET_CHARS, SNIPPET_LEAD_CHARS};
use crate::matching::Matched;

/// One line of a document with the matches in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// What the text is.
    pub kind: FieldKind,
    /// The text. White space is collapsed, and an ellipsis stands where text is left out.
    pub text: String,
    /// The matches, in characters (Unicode code points) of the text, in order and not overlapping.
    pub highlights: Vec<Range<usize>>,
}

/// The snippet of a document. `None` when it has no text.
#[must_use]
pub fn snippet(document: &Document, matched: &Matched) -> Option<Snippet> {
    let number = best_field(matched);
    let field = document.fields.get(number)?;
    let spans = matched.spans.iter().filter(|(of, _)| *of == number).map(|(_, at)| at);
    let mut spans = spans.peekable();
    let start = begin(&field.text, spans.peek().map_or(0, |first| first.start));
    let mut line = Line::new(start > 0);
    // Where the matches end that begin before a character. A text may have as many matches as words.
    let mut found_to = 0;
    for (offset, character) in field.text.get(start..)?.char_indices() {
        let at = start + offset;
        while let Some(span) = spans.next_if(|span| span.start <= at) {
            found_to = found_to.max(span.end);
        }
        if !line.push(character, at < found_to) {
            break;
        }
    }
    Some(Snippet { kind: field.kind, text: line.text, highlights: line.highlights })
}

/// The field with the most places.
fn best_field(matched: &Matched) -> usize {
    let mut best = (0, 0);
    for chunk in matched.spans.chunk_by(|a, b| a.0 == b.0) {
        if let Some((number, _)) = chunk.first()
            && chunk.len() > best.1
        {
            best = (*number, chunk.len());
        }
    }
    best.0
}

/// Where the snippet begins, so that the first match has some text before it: at the beginning of a
/// word.
fn begin(text: &str, first: usize) -> usize {
    let before = text.get(..first).unwrap_or_default();
    let Some((lead, _)) = before.char_indices().rev().nth(SNIPPET_LEAD_CHARS) else { return 0 };
    let space = text.get(lead..first).and_then(|part| part.find(char::is_whitespace));
    space.map_or(lead, |space| lead + space)
}

struct Line {
    text: String,
    chars: usize,
    has_gap: bool,
    highlights: Vec<Range<usize>>,
}

impl Line {
    fn new(is_cut: bool) -> Self {
        let text = if is_cut { "\u{2026}".to_owned() } else { String::new() };
        Self { text, chars: usize::from(is_cut), has_gap: false, highlights: Vec::new() }
    }

    /// Adds a character; `false` when the line is full.
    fn push(&mut self, character: char, is_found: bool) -> bool {
        if character.is_whitespace() || character.is_control() {
            self.has_gap = self.chars > 0;
            return true;
        }
        if self.chars >= SNIPPET_CHARS {
            self.text.push('\u{2026}');
            return false;
        }
        if std::mem::take(&mut self.has_gap) {
            // A phrase is highlighted as a whole.
            let goes_on = is_found && self.highlights.last().is_some_and(|at| at.end == self.chars);
            self.add(' ', goes_on);
        }
        self.add(character, is_found);
        true
    }

    fn add(&mut self, character: char, is_found: bool) {
        if is_found {
            let count = self.highlights.len();
            match self.highlights.last_mut() {
                Some(last) if last.end == self.chars => last.end += 1,
                _ if count < HIGHLIGHTS_MAX => {
                    self.highlights.push(self.chars..self.chars + 1);
                }
                _ => {}
            }
        }
        self.text.push(character);
        self.chars += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Field;

    /// The snippet of a text in which every `word` was found.
    fn of(text: &str) -> (String, Vec<Range<usize>>) {
        let fields = vec![Field { kind: FieldKind::Text, text: text.to_owned() }];
        let document = Document { fields, ..Document::default() };
        let spans = text.match_indices("word").map(|(at, word)| (0, at..at + word.len()));
        let snippet = snippet(&document, &Matched { spans: spans.collect() }).unwrap();
        (snippet.text, snippet.highlights)
    }

    #[test]
    fn matches_are_highlighted_where_they_are() {
        assert_eq!(
            of("a word, another  word"),
            ("a word, another word".to_owned(), vec![2..6, 16..20])
        );
        let (text, highlights) = of(&format!("{}word", "long before ".repeat(9)));
        assert!(text.starts_with('\u{2026}') && text.ends_with(" word"), "{text}");
        assert_eq!(highlights, vec![text.chars().count() - 4..text.chars().count()]);
    }

    /// Comparing every character with every match would take minutes.
    #[test]
    fn a_text_of_many_matches_and_much_space_is_cut_quickly() {
        let text = format!("word{}{}", " ".repeat(1_000_000), "word ".repeat(200_000));
        let (text, highlights) = of(&text);
        assert_eq!((highlights.len(), highlights[0].start), (1, 0), "they follow each other");
        assert!(text.starts_with("word word word"), "{text}");
    }
}
