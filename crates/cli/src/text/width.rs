//! How wide text is on a terminal: wide characters take two columns, combining ones none.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Tabs lead to the next column that is a multiple of this.
pub(super) const TAB_COLUMNS: usize = 4;

/// Columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A text cut to at most `columns`, with an ellipsis where something was left out.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let Some(before) = columns.checked_sub(1) else {
        return String::new();
    };
    let (head, _) = take(text, before);
    format!("{head}…")
}

/// The end of a text, at most `columns` of it, with an ellipsis where something was left out: of a path, the end says most.
pub(crate) fn fit_end(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let Some(after) = columns.checked_sub(1) else {
        return String::new();
    };
    let (mut used, mut start) = (0, text.len());
    for (at, cluster) in text.grapheme_indices(true).rev() {
        used += width(cluster);
        if after < used {
            break;
        }
        start = at;
    }
    format!("…{}", text.get(start..).unwrap_or_default())
}

/// A text of exactly `columns`: cut, or filled with spaces at its end.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let mut text = fit(text, columns);
    let missing = columns.saturating_sub(width(&text));
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// A line with spaces in the place of its tabs.
pub(super) fn expand_tabs(line: &str) -> String {
    let mut expanded = String::with_capacity(line.len() + TAB_COLUMNS);
    let mut parts = line.split('\t').peekable();
    while let Some(part) = parts.next() {
        expanded.push_str(part);
        if parts.peek().is_some() {
            let missing = TAB_COLUMNS - width(&expanded) % TAB_COLUMNS;
            expanded.extend(std::iter::repeat_n(' ', missing));
        }
    }
    expanded
}

/// A text in lines of at most `columns`, broken between words where that is possible. The rest of a broken line is indented as
/// the line is, unless few columns would be left. At most `lines_max` lines.
pub(crate) fn wrap(text: &str, columns: usize, lines_max: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for line in text.split('\n') {
        wrap_line(line, columns, lines_max, &mut lines);
        if lines.len() >= lines_max {
            break;
        }
    }
    lines
}

fn wrap_line(line: &str, columns: usize, lines_max: usize, lines: &mut Vec<String>) {
    let spaces = line.len() - line.trim_start_matches(' ').len();
    let indent = line.get(..spaces).filter(|_| spaces * 2 <= columns).unwrap_or_default();
    let (mut start, mut rest) = ("", line);
    // Each round reads what it shows and not the rest, which may be a megabyte.
    while lines.len() < lines_max {
        let (head, _) = take(rest, columns - start.len());
        if head.len() == rest.len() {
            lines.push(format!("{start}{rest}"));
            return;
        }
        // A first character that is wider than the window is taken anyway.
        let head = if head.is_empty() { first_cluster(rest) } else { head };
        let (shown, next) = break_after(rest, head.len());
        lines.push(format!("{start}{}", shown.trim_end()));
        if next.is_empty() {
            return;
        }
        // Beside the indentation there must be a column for text, or this would not end.
        let fits = indent.len() + width(first_cluster(next)) <= columns;
        (start, rest) = (if fits { indent } else { "" }, next);
    }
}

/// Where to break: after the last space within the first `limit` bytes, or right there.
fn break_after(text: &str, limit: usize) -> (&str, &str) {
    let head = text.get(..limit).unwrap_or(text);
    let next_is_space = text.get(limit..).is_some_and(|rest| rest.starts_with(' '));
    let at = if next_is_space {
        limit
    } else {
        // A break in the indentation would make an empty line and gain nothing.
        let indent = head.len() - head.trim_start().len();
        head.rfind(' ').filter(|at| *at > indent).unwrap_or(limit)
    };
    let (shown, rest) = text.split_at_checked(at).unwrap_or((text, ""));
    (shown, rest.strip_prefix(' ').unwrap_or(rest))
}

fn first_cluster(text: &str) -> &str {
    text.graphemes(true).next().unwrap_or_default()
}

/// The longest beginning of whole characters that fits, and how wide it is.
fn take(text: &str, columns: usize) -> (&str, usize) {
    let mut used = 0;
    let mut end = 0;
    for cluster in text.graphemes(true) {
        let next = used + width(cluster);
        if columns < next {
            break;
        }
        used = next;
        end += cluster.len();
    }
    (text.get(..end).unwrap_or_default(), used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(width("世界"), 4);
        assert_eq!(fit("世界世界", 5), "世界…");
        assert_eq!(fit("世界世界", 4), "世…");
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abc", 0), "");
        assert_eq!(fit_end("世界世界", 5), "…世界");
        assert_eq!(fit_end("世界世界", 4), "…界");
        assert_eq!(
            (fit_end("abc", 3), fit_end("abc", 1), fit_end("abc", 0)),
            ("abc".into(), "…".into(), String::new())
        );
        assert_eq!(pad("世", 4), "世  ");
    }

    #[test]
    fn lines_break_between_words() {
        let check = |text: &str, columns, expected: &[&str]| {
            assert_eq!(wrap(text, columns, 100), expected, "{text:?} at {columns}");
        };
        check("the quick brown fox", 10, &["the quick", "brown fox"]);
        check("the quick brown fox", 9, &["the quick", "brown fox"]);
        check("unbreakable", 4, &["unbr", "eaka", "ble"]);
        check("    indented line", 12, &["    indented", "    line"]);
        check("    indented line", 10, &["    indent", "    ed", "    line"]);
        check("    indented line", 7, &["    ind", "ented", "line"]);
        check("a\n\nb", 5, &["a", "", "b"]);
        check("世界你好", 5, &["世界", "你好"]);
        check("世", 1, &["世"]);
        assert_eq!(wrap("a b c d", 1, 2), ["a", "b"]);
    }

    /// Reading the whole rest for each line would take minutes.
    #[test]
    fn the_first_lines_of_a_long_line_are_made_without_reading_the_rest() {
        for text in ["word ".repeat(4_000_000), "x".repeat(20_000_000)] {
            let lines = wrap(&text, 60, 2_000);
            assert_eq!(
                (lines.len(), width(&lines[1_999])),
                (2_000, 59 + text.starts_with('x') as usize)
            );
        }
    }

    proptest! {
        #[test]
        fn what_fits_fits_and_wrapping_loses_only_spaces(text in "[a-z 世é]{0,60}", columns in 2..20_usize) {
            prop_assert!(width(&fit(&text, columns)) <= columns);
            let lines = wrap(&text, columns, usize::MAX);
            prop_assert!(lines.iter().all(|line| width(line) <= columns));
            let squeeze = |text: &str| text.replace(' ', "");
            prop_assert_eq!(squeeze(&lines.concat()), squeeze(&text));
        }
    }
}
