//! One-line JSON objects that carry their own checksum as the last member:
//! `{...,"crc":"1a2b3c4d"}`. The checksum is CRC-32C over every byte before `,"crc":`.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::hex;
use crate::LogError;

const TAIL_BYTES: usize = ",\"crc\":\"00000000\"}".len();

/// Why a sealed object cannot be believed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// Too short, or not ended as a sealed object ends.
    #[error("it does not end with its checksum")]
    NotSealed,
    /// The checksum is another one.
    #[error("its checksum does not fit")]
    Checksum,
    /// The checksum fits but the members are not the expected ones.
    #[error("its members are wrong: {0}")]
    Members(#[from] serde_json::Error),
}

/// Serialises an object and closes it with its checksum. No line break.
pub fn seal<T: Serialize>(value: &T) -> crate::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    seal_line(value, &mut bytes)?;
    bytes.pop();
    Ok(bytes)
}

/// Appends the same with a line break to `out`.
pub(super) fn seal_line<T: Serialize>(value: &T, out: &mut Vec<u8>) -> crate::Result<()> {
    let start = out.len();
    if let Err(error) = serde_json::to_writer(&mut *out, value) {
        out.truncate(start);
        return Err(LogError::Invalid { reason: error.to_string() });
    }
    // The checksum is over everything before it, without the closing brace.
    out.pop();
    let crc = crc32c::crc32c(out.get(start..).unwrap_or_default());
    out.extend_from_slice(b",\"crc\":\"");
    out.extend_from_slice(&hex(crc));
    out.extend_from_slice(b"\"}\n");
    Ok(())
}

/// Checks and parses what [`seal`] wrote. Every byte counts: one changed bit anywhere is seen.
pub fn unseal<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, SealError> {
    let body_len = bytes.len().checked_sub(TAIL_BYTES).ok_or(SealError::NotSealed)?;
    let (body, tail) = bytes.split_at(body_len);
    let expected = format!(",\"crc\":\"{:08x}\"}}", crc32c::crc32c(body));
    if !tail.starts_with(b",\"crc\":\"") || !tail.ends_with(b"\"}") {
        return Err(SealError::NotSealed);
    }
    if tail != expected.as_bytes() {
        return Err(SealError::Checksum);
    }
    let mut object = Vec::with_capacity(body.len() + 1);
    object.extend_from_slice(body);
    object.push(b'}');
    Ok(serde_json::from_slice(&object)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize, Debug, PartialEq)]
    struct Thing {
        name: String,
        size: u64,
    }

    #[test]
    fn every_changed_bit_is_seen() {
        let thing = Thing { name: "x".into(), size: 7 };
        let bytes = seal(&thing).unwrap();
        assert_eq!(unseal::<Thing>(&bytes).unwrap(), thing);
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(unseal::<Thing>(&changed).is_err(), "bit {bit}");
        }
    }
}
