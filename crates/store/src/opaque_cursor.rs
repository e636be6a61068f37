//! Positions that callers hold without learning anything from them.
//!
//! The feed of all sessions counts the changes of all callers. A caller that sees only some sessions must not learn
//! from a cursor how much the others write, so the count is encrypted. The key comes from the epoch of the count, which
//! is random and never shown; a cursor of another epoch does not decrypt. The cipher is AES-SIV (RFC 5297): it needs no
//! nonce, so a cursor needs no randomness and no state, and is refused when a single bit of it was changed.

use aes_siv::KeyInit;
use aes_siv::siv::Aes128Siv;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bough_session::Incarnation;
use sha2::{Digest, Sha256};

/// The plain text: of a fixed size, so that its length reveals nothing.
pub type Sealed = [u8; 32];

/// How many letters an encrypted position has: 32 bytes and a tag of 16, in Base64.
pub const SEAL_CHARS: usize = 64;

/// No text beside the position is authenticated.
const NO_HEADERS: [&[u8]; 0] = [];

/// Encrypts a position of an epoch.
#[must_use]
pub fn seal(epoch: Incarnation, text: &Sealed) -> String {
    // The cipher refuses only more than 126 headers.
    let sealed = cipher(epoch).encrypt(NO_HEADERS, text).unwrap_or_default();
    URL_SAFE_NO_PAD.encode(sealed)
}

/// Decrypts a position, if it is of this epoch.
#[must_use]
pub fn unseal(epoch: Incarnation, seal: &str) -> Option<Sealed> {
    let sealed = URL_SAFE_NO_PAD.decode(seal).ok()?;
    let text = cipher(epoch).decrypt(NO_HEADERS, &sealed).ok()?;
    text.try_into().ok()
}

fn cipher(epoch: Incarnation) -> Aes128Siv {
    let mut key = Sha256::new();
    key.update(b"bough cursor key\n");
    key.update(epoch.bytes());
    Aes128Siv::new(&key.finalize())
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
