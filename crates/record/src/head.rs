use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::Incarnation;

/// One link of the hash chain: SHA-256, written as 43 characters of base64url.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChainHash([u8; 32]);

impl ChainHash {
    /// Where the chain of one incarnation of a log begins.
    #[must_use]
    pub fn genesis(id: &str, incarnation: Incarnation) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(b"bough.chain.v1\0");
        hasher.update(incarnation.bytes());
        hasher.update(id.as_bytes());
        Self(hasher.finalize().into())
    }

    /// The link after this one, over a frame's header text and the digest of its payload.
    #[must_use]
    pub fn next(self, header: &[u8], payload_digest: &[u8; 32]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update(payload_digest);
        hasher.update(header);
        Self(hasher.finalize().into())
    }

    /// The 32 bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; 32] {
        self.0
    }

    /// The 43 characters that stand for it in files.
    #[must_use]
    pub fn text(self) -> [u8; 43] {
        let mut text = [b'A'; 43];
        // The buffer has exactly the 43 characters that 32 bytes need, so this cannot fail.
        drop(URL_SAFE_NO_PAD.encode_slice(self.0, &mut text));
        text
    }

    /// The link that these bytes are.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Parses the 43 characters that [`fmt::Display`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let written = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
        (written == bytes.len()).then_some(Self(bytes))
    }
}

/// The digest that the chain covers instead of the payload. It stays the same when the payload is
/// redacted.
#[must_use]
pub fn payload_digest(nonce: &str, payload: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(nonce.as_bytes());
    hasher.update(payload);
    hasher.finalize().into()
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for ChainHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ChainHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a chain hash"))
    }
}

/// Where a log is: which incarnation, how many records, and the hash over all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Head {
    /// The incarnation.
    pub incarnation: Incarnation,
    /// The newest record's number; 0 before the first.
    pub seq: u64,
    /// The hash chain up to it.
    pub chain: ChainHash,
}

impl Head {
    /// The head of a log without records.
    #[must_use]
    pub fn genesis(id: &str, incarnation: Incarnation) -> Self {
        Self { incarnation, seq: 0, chain: ChainHash::genesis(id, incarnation) }
    }
}
