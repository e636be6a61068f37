//! Reading valid JSON that no [`Value`] can hold, with some loss.
//!
//! Files of other programs contain three such things: half of a surrogate pair (JavaScript cuts texts in the middle of
//! a pair and writes the half as an escape), nesting that no reader accepts, and numbers that do not fit a float. Each
//! is replaced where it is, so the rest of a message is still shown. The stored text never changes.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;
use serde_json::Value;

use crate::limits::SHOWN_DEPTH_MAX;

/// What is shown instead of half a surrogate pair: the replacement character, as an escape.
const HALF_SHOWN_AS: &str = "\\ufffd";
/// An escape such as `\ud83d`, in bytes.
const ESCAPE_BYTES: usize = 6;
/// Shorter numbers without an exponent always fit.
const PLAIN_NUMBER_BYTES: usize = 300;

/// What is replaced in a JSON text when it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Halves of surrogate pairs, shown as replacement characters.
    pub halves: usize,
    /// Values that are too deep or too large, replaced by a text about it.
    pub values: usize,
}

impl Unseen {
    /// Counts what is replaced in a text. One pass, without allocation if nothing is.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut unseen = Self::default();
        for repair in repairs(text) {
            match repair.shown {
                Shown::Half => unseen.halves += 1,
                Shown::TooDeep | Shown::Number => unseen.values += 1,
            }
        }
        unseen
    }
}

/// The text with everything replaced that no value can hold; borrowed if there is nothing to replace.
#[must_use]
pub fn lossy_json(text: &str) -> Cow<'_, str> {
    let repairs = repairs(text);
    if repairs.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut lossy = String::with_capacity(text.len());
    let mut done = 0;
    for repair in repairs {
        lossy.push_str(text.get(done..repair.at.start).unwrap_or_default());
        match repair.shown {
            Shown::Half => lossy.push_str(HALF_SHOWN_AS),
            Shown::TooDeep => {
                lossy.push_str(&format!(
                    "\"(not shown: nested more than {SHOWN_DEPTH_MAX} levels deep)\""
                ));
            }
            Shown::Number => {
                let number = text.get(repair.at.clone()).unwrap_or_default();
                lossy.push_str(&format!("\"{number}\""));
            }
        }
        done = repair.at.end;
    }
    lossy.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(lossy)
}

/// The value of a text that could not be read as it is.
pub(crate) fn lossy_value(text: &str) -> Value {
    serde_json::from_str(&lossy_json(text))
        .unwrap_or_else(|error| Value::from(format!("(not shown: this JSON is not read: {error})")))
}

struct Repair {
    at: Range<usize>,
    shown: Shown,
}

enum Shown {
    Half,
    TooDeep,
    /// As a text with the same digits.
    Number,
}

fn repairs(text: &str) -> Vec<Repair> {
    let mut walk = Walk { text, at: 0, found: Vec::new() };
    let mut depth = 0;
    while let Some(byte) = walk.byte(0) {
        match byte {
            b'"' => walk.string(true),
            b'-' | b'0'..=b'9' => walk.number(),
            b'[' | b'{' if depth == SHOWN_DEPTH_MAX => walk.too_deep(),
            b'[' | b'{' => {
                depth += 1;
                walk.at += 1;
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                walk.at += 1;
            }
            _ => walk.at += 1,
        }
    }
    walk.found
}

/// A walk over the tokens of a JSON text. It ends on any text, but its result is meaningful for
/// JSON only.
struct Walk<'a> {
    text: &'a str,
    at: usize,
    found: Vec<Repair>,
}

impl Walk<'_> {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// Skips the string that begins here; counts halves in it if `looking`.
    fn string(&mut self, looking: bool) {
        self.at += 1;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let Some(next) = memchr2(b'"', b'\\', rest) else {
                self.at = self.text.len();
                return;
            };
            self.at += next;
            if self.byte(0) == Some(b'"') {
                self.at += 1;
                return;
            }
            self.escape(looking);
        }
    }

    fn escape(&mut self, looking: bool) {
        let (is_high, is_low) = match self.code(0) {
            Some(code) => ((0xd800..0xdc00).contains(&code), (0xdc00..0xe000).contains(&code)),
            None => {
                self.at += 2;
                return;
            }
        };
        let paired =
            is_high && self.code(ESCAPE_BYTES).is_some_and(|low| (0xdc00..0xe000).contains(&low));
        let end = self.at + if paired { 2 * ESCAPE_BYTES } else { ESCAPE_BYTES };
        if looking && !paired && (is_high || is_low) {
            self.found.push(Repair { at: self.at..end, shown: Shown::Half });
        }
        self.at = end;
    }

    /// The number of a `\u` escape.
    fn code(&self, ahead: usize) -> Option<u32> {
        let from = self.at + ahead;
        let digits = self.text.get(from..from + ESCAPE_BYTES)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    }

    fn number(&mut self) {
        let start = self.at;
        let of_number = |byte: u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        while self.byte(0).is_some_and(of_number) {
            self.at += 1;
        }
        let number = self.text.get(start..self.at).unwrap_or_default();
        if number.len() < PLAIN_NUMBER_BYTES && !number.contains(['e', 'E']) {
            return;
        }
        if number.parse::<f64>().is_ok_and(f64::is_infinite) {
            self.found.push(Repair { at: start..self.at, shown: Shown::Number });
        }
    }

    /// Skips the list or object that begins here.
    fn too_deep(&mut self) {
        let start = self.at;
        let mut open = 0_usize;
        while let Some(byte) = self.byte(0) {
            match byte {
                b'"' => {
                    self.string(false);
                    continue;
                }
                b'[' | b'{' => open += 1,
                b']' | b'}' => open = open.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                break;
            }
        }
        self.found.push(Repair { at: start..self.at, shown: Shown::TooDeep });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn halves_of_pairs_are_replacement_characters_and_whole_pairs_stay() {
        let check = |text: &str, shown: &str, halves: usize| {
            assert_eq!(lossy_value(text), json!(shown), "{text}");
            assert_eq!(Unseen::of(text), Unseen { halves, values: 0 }, "{text}");
        };
        check(r#""cut \ud83d""#, "cut \u{fffd}", 1);
        check(r#""\ude00 cut""#, "\u{fffd} cut", 1);
        check(r#""\uD83D\ude00""#, "\u{1f600}", 0);
        check(r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}", 1);
        check(r#""\ud83d\u0041""#, "\u{fffd}A", 1);
        check(r#""\\ud83d \" \u00e9""#, "\\ud83d \" \u{e9}", 0);
    }

    #[test]
    fn keys_are_replaced_too() {
        assert_eq!(lossy_value(r#"{"\ud83d":1}"#), json!({"\u{fffd}": 1}));
    }

    #[test]
    fn what_is_too_deep_is_said_in_its_place_and_the_rest_is_seen() {
        let deep = format!("{{\"x\":{}\"]\"{},\"y\":[1]}}", "[".repeat(4_000), "]".repeat(4_000));
        let value = lossy_value(&deep);
        assert_eq!(value["y"], json!([1]));
        assert!(value["x"].to_string().contains("nested more than"));
        assert_eq!(Unseen::of(&deep), Unseen { halves: 0, values: 1 });
    }

    #[test]
    fn numbers_beyond_a_float_are_texts() {
        let long = "9".repeat(400);
        let text = format!("[1E400,-1e999,{long},1e300,0e999,12]");
        let seen = lossy_value(&text);
        assert_eq!(seen, json!(["1E400", "-1e999", long, 1e300, 0.0, 12]));
        assert_eq!(Unseen::of(&text).values, 3);
    }

    proptest! {
        #[test]
        fn any_text_ends_and_json_that_can_be_read_stays(text in "\\PC{0,60}", words in any::<[String; 3]>()) {
            drop(lossy_json(&text));
            let json = json!({ "words": words, "n": 1.5e3 }).to_string();
            prop_assert_eq!(lossy_json(&json), json.as_str());
        }
    }
}
