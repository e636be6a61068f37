//! Sanitises text from transcripts, titles and names, which others wrote. A terminal obeys some of it: escape sequences
//! move the cursor, change the title, even answer with keystrokes; bidirectional controls show one thing and copy
//! another. None of that may pass.
//!
//! - Control characters (C0, DEL, C1) become their visible pictures, so that nothing is hidden.
//! - Characters that reorder or hide text become the replacement character.
//! - Joiners and variation selectors stay: scripts and emoji need them.

use std::borrow::Cow;

use super::width::expand_tabs;

/// Replaces a character that may not be shown.
const REPLACEMENT: char = '\u{fffd}';

/// A text as one sanitised line: line breaks and tabs become spaces.
pub(crate) fn clean_line(text: &str) -> Cow<'_, str> {
    clean(text, |character| match character {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' | '\u{85}' => Some(' '),
        _ => None,
    })
}

/// A sanitised text of several lines: line breaks stay, tabs are expanded to spaces.
pub(crate) fn clean_text(text: &str) -> Cow<'_, str> {
    let clean = clean_tabbed(text);
    if !clean.contains('\t') {
        return clean;
    }
    let lines: Vec<String> = clean.split('\n').map(expand_tabs).collect();
    Cow::Owned(lines.join("\n"))
}

/// A sanitised text of several lines: line breaks and tabs stay.
pub(crate) fn clean_tabbed(text: &str) -> Cow<'_, str> {
    let text = if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    };
    let keep = |character| match character {
        '\n' => Some('\n'),
        '\u{2028}' | '\u{2029}' | '\u{85}' => Some('\n'),
        '\t' => Some('\t'),
        _ => None,
    };
    match text {
        Cow::Borrowed(text) => clean(text, keep),
        Cow::Owned(text) => Cow::Owned(clean(&text, keep).into_owned()),
    }
}

/// JSON in which the same characters are written as escapes, which every JSON reader reads back. JSON itself escapes
/// those below the space in strings, and outside of strings it has none of the others.
pub(crate) fn escape_json(json: &str) -> Cow<'_, str> {
    let is_escaped = |character: char| character > ' ' && is_dangerous(character);
    if !json.chars().any(is_escaped) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if is_escaped(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

fn clean(text: &str, keep: impl Fn(char) -> Option<char>) -> Cow<'_, str> {
    let changes = |character: char| keep(character).unwrap_or_else(|| shown(character));
    if text.chars().all(|character| changes(character) == character) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(changes).collect())
}

/// The character that is shown for a character.
fn shown(character: char) -> char {
    match character {
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(character)).unwrap_or(REPLACEMENT),
        '\u{7f}' => '\u{2421}',
        _ if is_dangerous(character) => REPLACEMENT,
        _ => character,
    }
}

/// Whether a character could mislead a terminal or a reader.
fn is_dangerous(character: char) -> bool {
    matches!(character,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Marks, embeddings, overrides and isolates of direction.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
        // Separators that some programs take for line breaks.
        | '\u{2028}' | '\u{2029}'
        // Invisible: zero-width space, word joiner and its neighbours, byte order mark, annotations, tags.
        | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_are_shown_and_not_obeyed() {
        let check = |text: &str, line: &str| assert_eq!(clean_line(text), line);
        check("\u{1b}[31mred\u{1b}[0m", "␛[31mred␛[0m");
        check("\u{1b}]0;title\u{7}", "␛]0;title␇");
        check("\u{9b}31m", "\u{fffd}31m");
        check("a\u{8}b\u{7f}", "a␈b␡");
        check("safe \u{202e}txt.exe", "safe \u{fffd}txt.exe");
        check("two\nlines\tand a tab", "two lines and a tab");
        check(
            "family 👩\u{200d}👩\u{200d}👧 and ❤\u{fe0f}",
            "family 👩\u{200d}👩\u{200d}👧 and ❤\u{fe0f}",
        );
    }

    #[test]
    fn texts_keep_their_lines() {
        assert_eq!(clean_text("a\r\nb\n\tc\u{1b}"), "a\nb\n    c␛");
        assert_eq!(clean_text("ab\tc\td"), "ab  c   d");
        assert_eq!(clean_tabbed("a\tb\u{1b}"), "a\tb␛");
        assert_eq!(clean_text("a\rb"), "a␍b", "a lone return would overwrite the line");
        assert!(matches!(clean_text("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_says_the_same_after_escaping() {
        for text in ["\u{9b}31m \u{202e} \u{e0041} 世界", "\u{1b}", "\u{7f}"] {
            let value = serde_json::json!({ "a": text });
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let escaped = escape_json(&pretty);
            assert!(!escaped.chars().any(|c| c != '\n' && is_dangerous(c)), "{escaped:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        }
    }

    proptest! {
        #[test]
        fn nothing_dangerous_passes(text in any::<String>()) {
            prop_assert!(!clean_line(&text).chars().any(is_dangerous));
            prop_assert!(!clean_text(&text).chars().any(|c| c != '\n' && is_dangerous(c)));
        }
    }
}
