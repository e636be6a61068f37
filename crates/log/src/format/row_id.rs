//! An entry's id as an offset row has it: short, and kept without memory of its own.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use sha2::{Digest as _, Sha256};

use super::put_hex;

/// Characters of the longest.
const CHARS_MAX: usize = 34;
/// Characters of a digest, with the mark before it.
const DIGEST_CHARS: u8 = 33;

/// The entry's id, or `#` and 32 hex digits of its SHA-256 when it is long or not plain.
#[derive(Clone, Copy)]
pub struct RowId {
    len: u8,
    text: [u8; CHARS_MAX],
}

impl RowId {
    /// Of a record that adds no entry.
    pub const NONE: Self = Self { len: 0, text: [0; CHARS_MAX] };

    /// How an entry's id stands in a row.
    #[must_use]
    pub fn of(id: &str) -> Self {
        let plain = !id.starts_with('#')
            && id.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\');
        Self::kept(id).filter(|_| plain).unwrap_or_else(|| Self::digest(id))
    }

    /// The id in a row; `None` when it is longer than a row can hold.
    #[must_use]
    pub fn kept(text: &str) -> Option<Self> {
        let mut row_id = Self::NONE;
        row_id.len = u8::try_from(text.len()).ok()?;
        row_id.text.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(row_id)
    }

    fn digest(id: &str) -> Self {
        let mut row_id = Self { len: DIGEST_CHARS, ..Self::NONE };
        if let Some((mark, digits)) = row_id.text.split_first_mut() {
            *mark = b'#';
            let digits = digits.get_mut(..usize::from(DIGEST_CHARS) - 1).unwrap_or_default();
            put_hex(&Sha256::digest(id.as_bytes()), digits);
        }
        row_id
    }
}

impl Deref for RowId {
    type Target = str;

    fn deref(&self) -> &str {
        let bytes = self.text.get(..usize::from(self.len)).unwrap_or_default();
        // It was text when it came.
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl PartialEq for RowId {
    fn eq(&self, other: &Self) -> bool {
        // What stands after the end is always zero.
        self.len == other.len && self.text == other.text
    }
}

impl Eq for RowId {}

impl Hash for RowId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.text.get(..usize::from(self.len)).unwrap_or_default());
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &**self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_odd_ids_are_hashed() {
        for plain in ["e_1", "x", &"x".repeat(CHARS_MAX)] {
            assert_eq!(&*RowId::of(plain), plain);
        }
        assert_eq!(&*RowId::of("a b"), "#c8687a08aa5d6ed2044328fa6a697ab8");
        for odd in ["#x", "quote\"", "back\\", "\u{e9}", &"x".repeat(CHARS_MAX + 1)] {
            let row_id = RowId::of(odd);
            assert!(row_id.starts_with('#') && row_id.len() == 33, "{odd:?} {row_id}");
            assert_ne!(row_id, RowId::of("a b"));
        }
    }

    #[test]
    fn a_text_that_is_longer_than_a_row_can_hold_is_no_row_id() {
        assert!(RowId::kept(&"x".repeat(CHARS_MAX)).is_some());
        assert!(RowId::kept(&"x".repeat(CHARS_MAX + 1)).is_none());
        assert!(RowId::kept(&"x".repeat(300)).is_none());
    }
}
