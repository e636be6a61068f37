//! Words of a command line that a hint shows, so that it can be pasted.

use std::borrow::Cow;

/// A word as a shell reads it back: in single quotes if it has anything but letters, digits and a few signs.
pub(crate) fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@%+=,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn words_with_spaces_and_signs_are_quoted() {
        assert_eq!(shell_word("s_4f2a"), "s_4f2a");
        assert_eq!(shell_word("my notes"), "'my notes'");
        assert_eq!(shell_word("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(shell_word(""), "''");
    }
}
