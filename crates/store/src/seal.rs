//! Places that callers carry about without learning anything from them.
//!
//! The feed of all sessions counts everybody's changes. A caller who sees only some sessions must not learn from a
//! cursor how much the others write, so the count is sealed: the key is the epoch of the count, which is random and
//! never shown. A tag is made from the key and the text (it also tells a seal of ours from any other), and the text is
//! covered with a key stream that begins with the tag.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bough_session::Incarnation;
use sha2::{Digest, Sha256};

/// What a seal covers: a fixed size, so that its length tells nothing.
pub type Sealed = [u8; 32];

/// How many letters a seal has.
pub const SEAL_CHARS: usize = 64;

const TAG_BYTES: usize = 16;

/// Seals a text under the epoch that it is of.
#[must_use]
pub fn seal(epoch: Incarnation, text: &Sealed) -> String {
    let tag = tag_of(epoch, text);
    let covered = cover(epoch, &tag, text);
    let mut whole = [0; TAG_BYTES + size_of::<Sealed>()];
    let (start, rest) = whole.split_at_mut(TAG_BYTES);
    start.copy_from_slice(&tag);
    rest.copy_from_slice(&covered);
    URL_SAFE_NO_PAD.encode(whole)
}

/// What was sealed, if it was under this epoch.
#[must_use]
pub fn unseal(epoch: Incarnation, seal: &str) -> Option<Sealed> {
    let bytes = URL_SAFE_NO_PAD.decode(seal).ok()?;
    let (tag, covered) = bytes.split_first_chunk::<TAG_BYTES>()?;
    let text = cover(epoch, tag, covered.try_into().ok()?);
    (tag_of(epoch, &text) == *tag).then_some(text)
}

fn tag_of(epoch: Incarnation, text: &Sealed) -> [u8; TAG_BYTES] {
    let whole = hash(epoch, b"bough tag\n", text);
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(whole.split_at(TAG_BYTES).0);
    tag
}

/// Covers a text, or uncovers it.
fn cover(epoch: Incarnation, tag: &[u8; TAG_BYTES], text: &Sealed) -> Sealed {
    let mut covered = hash(epoch, b"bough key\n", tag);
    for (byte, of_text) in covered.iter_mut().zip(text) {
        *byte ^= of_text;
    }
    covered
}

fn hash(epoch: Incarnation, purpose: &[u8], text: &[u8]) -> Sealed {
    let mut hash = Sha256::new();
    hash.update(epoch.bytes());
    hash.update(purpose);
    hash.update(text);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: Incarnation = Incarnation::new([5; 16]);

    #[test]
    fn only_the_epoch_opens_a_seal_and_only_a_whole_one() {
        let text = [7; 32];
        let sealed = seal(EPOCH, &text);
        assert_eq!(sealed.len(), SEAL_CHARS);
        assert_eq!(unseal(EPOCH, &sealed), Some(text));
        assert_eq!(unseal(Incarnation::new([6; 16]), &sealed), None);
        for at in 0..sealed.len() {
            let mut bent = sealed.clone().into_bytes();
            bent[at] = if bent[at] == b'A' { b'B' } else { b'A' };
            let bent = String::from_utf8(bent).unwrap();
            assert_eq!(unseal(EPOCH, &bent), None, "letter {at}");
        }
        assert_eq!(unseal(EPOCH, &sealed[1..]), None);
        assert_eq!(unseal(EPOCH, ""), None);
    }

    #[test]
    fn neighbouring_numbers_have_nothing_in_common() {
        let of = |number: u8| {
            let mut text = [0; 32];
            text[0] = number;
            seal(EPOCH, &text)
        };
        let same = of(1).bytes().zip(of(2).bytes()).filter(|(a, b)| a == b).count();
        assert!(same < SEAL_CHARS / 4, "{same} letters are the same");
    }
}
