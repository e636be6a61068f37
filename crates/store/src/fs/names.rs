//! Ids as file names.
//!
//! A letter, digit, `.`, `_` or `-` stays; every other byte becomes `%` and two hex digits. A name that would be too
//! long for the file system is cut, and `~` and a digest of the whole id follow: `~` is in no other name, so the two
//! kinds never collide, and the id is read from the file.

use bough_session::{SessionId, hex, percent_decode, percent_encode};
use sha2::{Digest, Sha256};

/// What every session file ends in.
pub(super) const SUFFIX: &str = ".jsonl";
/// Longest stem: what file systems allow for a name, without the suffix.
const STEM_BYTES_MAX: usize = 255 - SUFFIX.len();
/// How much of a long id stays readable.
const READABLE_BYTES: usize = 150;
/// How many bytes of the digest distinguish long ids.
const DIGEST_BYTES: usize = 16;

/// The owner of a file, by its name alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// The session's.
    Session(SessionId),
    /// A session's whose id is too long for a name.
    Long,
    /// Not the name of a session's file.
    Unknown,
}

/// The name of a session's file, without its suffix.
pub(super) fn stem_of(session: &SessionId) -> String {
    let encoded = encode(session.as_str());
    if encoded.len() <= STEM_BYTES_MAX {
        return encoded;
    }
    let digest: [u8; 32] = Sha256::digest(session.as_str().as_bytes()).into();
    // Everything encoded is one byte wide, so any cut is between characters.
    let readable: String = encoded.chars().take(READABLE_BYTES).collect();
    format!("{readable}~{}", hex(digest.split_at(DIGEST_BYTES).0))
}

/// Whose file a name is.
pub(super) fn named(file_name: &str) -> Named {
    let Some(stem) = file_name.strip_suffix(SUFFIX) else {
        return Named::Unknown;
    };
    if stem.contains('~') {
        return Named::Long;
    }
    let session = percent_decode(stem).map(SessionId::from_stored);
    // A name that another program spelled differently would give one session two files.
    match session {
        Some(session) if stem_of(&session) == stem => Named::Session(session),
        _ => Named::Unknown,
    }
}

/// `~` is in no name but those of long ids.
fn encode(text: &str) -> String {
    percent_encode(text).replace('~', "%7E")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(id: &str, stem: &str) {
        let session = SessionId::from_stored(id);
        assert_eq!(stem_of(&session), stem);
        assert_eq!(named(&format!("{stem}.jsonl")), Named::Session(session));
    }

    #[test]
    fn names_are_those_of_the_original() {
        check("s_0a", "s_0a");
        check("../escape/chat 42:?", "..%2Fescape%2Fchat%2042%3A%3F");
        check("..", "..");
        check(".", ".");
        check("世", "%E4%B8%96");
        check("a~b", "a%7Eb");
    }

    #[test]
    fn long_ids_are_cut_and_stay_apart() {
        let long = "x".repeat(300);
        let one = stem_of(&SessionId::from_stored(format!("{long}1")));
        let two = stem_of(&SessionId::from_stored(format!("{long}2")));
        assert_ne!(one, two);
        assert!(one.len() <= STEM_BYTES_MAX);
        assert_eq!(named(&format!("{one}.jsonl")), Named::Long);
        check(&"x".repeat(STEM_BYTES_MAX), &"x".repeat(STEM_BYTES_MAX));
    }

    #[test]
    fn other_names_are_nobodys() {
        for name in ["x.json", "x", "%zz.jsonl", "%2f.jsonl", "%FF.jsonl", "a b.jsonl", "%41.jsonl"]
        {
            assert_eq!(named(name), Named::Unknown, "{name}");
        }
    }
}
