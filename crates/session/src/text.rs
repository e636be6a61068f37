//! Text cut to size, and names in another spelling.

use std::borrow::Cow;

/// At most `limit` bytes of a text, in whole characters.
#[must_use]
pub fn cut_bytes(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// One line of at most `limit` characters. White space and control characters are collapsed into single spaces, and an
/// ellipsis stands where text was left out.
#[must_use]
pub fn preview(text: &str, limit: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    let mut gap = false;
    for character in text.chars() {
        if character.is_whitespace() || character.is_control() {
            gap = !line.is_empty();
            continue;
        }
        if count + usize::from(gap) >= limit {
            line.push('\u{2026}');
            return line;
        }
        if gap {
            line.push(' ');
            count += 1;
            gap = false;
        }
        line.push(character);
        count += 1;
    }
    line
}

/// A name in the spelling of JavaScript: `snakeCase` for `snake_case`.
#[must_use]
pub fn camel_case(key: Cow<'_, str>) -> Cow<'_, str> {
    let mut parts = key.split('_');
    let (Some(first), true) = (parts.next(), key.contains('_')) else { return key };
    let mut name = first.to_owned();
    for part in parts {
        let mut letters = part.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_keep_whole_characters() {
        assert_eq!(cut_bytes("héllo", 2), "h");
        assert_eq!(cut_bytes("héllo", 3), "hé");
        assert_eq!(cut_bytes("hé", 9), "hé");
    }

    #[test]
    fn a_preview_is_one_short_line() {
        assert_eq!(preview("  a\n\n b\u{1b}c ", 20), "a b c");
        assert_eq!(preview("abcdef", 3), "abc\u{2026}");
        assert_eq!(preview("ab cd", 3), "ab\u{2026}");
        assert_eq!(preview("世界", 2), "世界");
        assert_eq!(preview("", 2), "");
    }
}
