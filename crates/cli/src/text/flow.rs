//! Text that arrives in pieces and is printed as it comes: indented, and wrapped between words at the end of a window.

use unicode_segmentation::UnicodeSegmentation;

use super::width::{TAB_COLUMNS, width};

/// Columns that text stands in from the left.
const INDENT: usize = 2;

/// The state of printing a text. The text must be sanitised already; it may have tabs and line breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    /// The width of the window; `None` if the output is not a terminal, so that nothing is wrapped
    /// and tabs stay.
    columns: Option<usize>,
    /// The column that the next character is printed in; `None` at the beginning of a line, before the indent.
    at: Option<usize>,
    /// The column in which the rest of a broken line begins: below the text of the line, which may be indented itself.
    rest_at: usize,
    /// Whether the line has more than indentation.
    has_words: bool,
    /// The part of the last word that is printed already.
    printed: String,
}

impl Flow {
    pub(crate) const fn new(columns: Option<usize>) -> Self {
        Self { columns, at: None, rest_at: INDENT, has_words: false, printed: String::new() }
    }

    /// Whether a program reads the text, and its last line has no end yet.
    pub(crate) const fn keeps_program_waiting(&self) -> bool {
        self.columns.is_none() && self.at.is_some()
    }

    /// What to print for more text.
    pub(crate) fn add(&mut self, text: &str) -> String {
        let mut out = String::new();
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.end_line(&mut out);
                (self.rest_at, self.has_words) = (INDENT, false);
            }
            if !line.is_empty() {
                self.add_to_line(line, &mut out);
            }
        }
        out
    }

    /// What to print at the end of the text: nothing if its last line has ended.
    pub(crate) fn finish(&mut self) -> &'static str {
        self.printed.clear();
        (self.rest_at, self.has_words) = (INDENT, false);
        if self.at.take().is_some() { "\n" } else { "" }
    }

    fn end_line(&mut self, out: &mut String) {
        self.printed.clear();
        self.at = None;
        out.push('\n');
    }

    fn add_to_line(&mut self, line: &str, out: &mut String) {
        let Some(columns) = self.columns else {
            if self.at.replace(INDENT).is_none() {
                out.push_str("  ");
            }
            out.push_str(line);
            return;
        };
        // The last column stays free: terminals differ in where the cursor is after it.
        let end = columns.saturating_sub(1).max(INDENT + 1);
        for piece in line.split_inclusive([' ', '\t']) {
            let word = piece.trim_end_matches([' ', '\t']);
            if !word.is_empty() {
                self.add_word(word, end, out);
            }
            match piece.get(word.len()..) {
                Some("\t") => self.add_space(TAB_COLUMNS, end, out),
                Some(" ") => self.add_space(1, end, out),
                _ => {}
            }
        }
    }

    /// Adds the next part of a word. A word that does not fit moves to the next line as a whole, including its printed
    /// part; one that fits no line is broken.
    fn add_word(&mut self, word: &str, end: usize, out: &mut String) {
        let begun = width(&self.printed);
        let at = self.start_line(out);
        if !self.has_words {
            // Half of the window at the least is left to the text.
            self.rest_at = if (at - INDENT) * 2 <= end - INDENT { at } else { INDENT };
            self.has_words = true;
        }
        if at + width(word) <= end {
            out.push_str(word);
            self.at = Some(at + width(word));
            self.printed.push_str(word);
            return;
        }
        let whole = format!("{}{word}", self.printed);
        if at - begun > self.rest_at {
            if begun > 0 {
                out.push_str(&format!("\x1b[{begun}D\x1b[K"));
            }
            self.break_line(out);
            self.add_broken(&whole, end, out);
        } else {
            self.add_broken(word, end, out);
        }
    }

    /// Adds a word that may be longer than a line.
    fn add_broken(&mut self, word: &str, end: usize, out: &mut String) {
        for cluster in word.graphemes(true) {
            let at = self.start_line(out);
            if at + width(cluster) > end && at > self.rest_at {
                self.break_line(out);
            }
            let at = self.start_line(out);
            out.push_str(cluster);
            self.at = Some(at + width(cluster));
            self.printed.push_str(cluster);
        }
    }

    /// A space, or as many as lead to the next multiple of `step`. Nothing at the end of a line.
    fn add_space(&mut self, step: usize, end: usize, out: &mut String) {
        self.printed.clear();
        let at = self.start_line(out);
        let next = INDENT + (at - INDENT + step) / step * step;
        if next <= end {
            out.extend(std::iter::repeat_n(' ', next - at));
            self.at = Some(next);
        }
    }

    fn break_line(&mut self, out: &mut String) {
        out.truncate(out.trim_end_matches(' ').len());
        self.end_line(out);
    }

    fn start_line(&mut self, out: &mut String) -> usize {
        *self.at.get_or_insert_with(|| {
            out.extend(std::iter::repeat_n(' ', self.rest_at));
            self.rest_at
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed(columns: Option<usize>, pieces: &[&str]) -> String {
        let mut flow = Flow::new(columns);
        let mut out: String = pieces.iter().map(|piece| flow.add(piece)).collect();
        out.push_str(flow.finish());
        out
    }

    /// What a terminal shows of it.
    fn seen(columns: u16, pieces: &[&str]) -> Vec<String> {
        let mut terminal = vt100::Parser::new(60, columns, 0);
        terminal.process(printed(Some(columns.into()), pieces).replace('\n', "\r\n").as_bytes());
        let screen = terminal.screen().contents();
        screen.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    #[test]
    fn words_stay_whole_and_indented_however_they_arrive() {
        let expected = ["  the quick", "  brown fox"];
        assert_eq!(seen(14, &["the quick brown fox"]), expected);
        assert_eq!(seen(14, &["the qui", "ck bro", "wn f", "ox"]), expected);
        let letters: Vec<String> = "the quick brown fox".chars().map(String::from).collect();
        assert_eq!(seen(14, &letters.iter().map(String::as_str).collect::<Vec<_>>()), expected);
        assert_eq!(seen(8, &["unbreak", "able"]), ["  unbre", "  akabl", "  e"]);
        assert_eq!(seen(20, &["a\n", "\nb"]), ["  a", "", "  b"]);
    }

    #[test]
    fn the_rest_of_an_indented_line_is_indented_as_the_line_is() {
        let expected = ["  if x {", "      call(one,", "      two)", "  }"];
        assert_eq!(seen(18, &["if x {\n    call(one, two)\n}"]), expected);
        assert_eq!(seen(18, &["if x {\n  ", "  call(o", "ne, tw", "o)", "\n}"]), expected);
        assert_eq!(seen(18, &["\tunbreakableword"]), ["      unbreakable", "      word"]);
        // Not where too few columns would be left.
        assert_eq!(seen(14, &["        one two"]), ["          one", "  two"]);
    }

    #[test]
    fn tabs_lead_to_the_next_stop_on_a_terminal_and_stay_in_a_pipe() {
        assert_eq!(seen(30, &["\tx\ta"]), ["      x   a"]);
        assert_eq!(printed(None, &["\tx", "\ta\n", "b"]), "  \tx\ta\n  b\n");
    }

    #[test]
    fn a_pipe_gets_lines_as_they_are() {
        let long = "word ".repeat(100);
        assert_eq!(printed(None, &[&long, "end"]), format!("  {long}end\n"));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_too_wide(
            pieces in prop::collection::vec("[a-d 世\n]{0,12}| {0,20}", 0..8),
            columns in 6..30_u16,
        ) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let lines = seen(columns, &pieces);
            prop_assert!(lines.iter().all(|line| width(line) < usize::from(columns)));
            let letters = |text: &str| text.replace([' ', '\n'], "");
            prop_assert_eq!(letters(&lines.concat()), letters(&pieces.concat()));
        }
    }
}
