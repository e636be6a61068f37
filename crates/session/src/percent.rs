//! Percent-encoding, for ids in paths, queries and other addresses, and for texts in headers.

/// Percent-encodes everything but letters, digits and `-._~`.
#[must_use]
pub fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// The text that was percent-encoded; `None` if the escapes are not well formed.
#[must_use]
pub fn percent_decode(encoded: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let value = digit(rest.next()?)? * 16 + digit(rest.next()?)?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        for text in ["", "e_1", "a/b ü", "世界", "100%", "a,\"b\""] {
            assert_eq!(percent_decode(&percent_encode(text)).as_deref(), Some(text));
        }
        assert_eq!(percent_decode("%e4%B8%96").as_deref(), Some("世"), "digits of either case");
        for bad in ["%", "%4", "%zz", "%+4", "%ff"] {
            assert_eq!(percent_decode(bad), None, "{bad}");
        }
    }
}
