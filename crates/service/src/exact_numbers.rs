//! Numbers that metadata and origins cannot hold.
//!
//! Metadata and origins are compared, merged and indexed as values, and a number of a value has 64 bits. A request with
//! a number that would become another one is refused, so that nothing is altered silently. Messages and documents are
//! kept as text and hold any number.

use serde_json::Value;
use serde_json::value::RawValue;

/// A number that would become another one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InexactNumber {
    /// Where it stands, as a JSON pointer.
    pub(crate) path: String,
    /// The number as it came.
    pub(crate) number: String,
}

/// The members of an object that are held as values.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Values<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    origin: Option<&'a RawValue>,
}

/// The first number in the metadata or the origin of a request's member that would become another one.
pub(crate) fn find(member: &str, json: &str) -> Option<InexactNumber> {
    match member {
        "metadata" | "origin" => scan(json, format!("/{member}")),
        "meta" => serde_json::from_str::<Values<'_>>(json).ok()?.find("/meta"),
        "entries" => {
            let entries: Vec<Values<'_>> = serde_json::from_str(json).ok()?;
            let mut entries = entries.into_iter().enumerate();
            entries.find_map(|(at, entry)| entry.find(&format!("/entries/{at}")))
        }
        _ => None,
    }
}

impl Values<'_> {
    fn find(&self, path: &str) -> Option<InexactNumber> {
        let members = [("metadata", self.metadata), ("origin", self.origin)];
        members.iter().find_map(|(name, json)| scan((*json)?.get(), format!("{path}/{name}")))
    }
}

/// A step of a path: the member of an object, or the item of a list.
enum Step {
    Member(String),
    Item(usize),
}

/// Looks at every number of a JSON text. The text is valid; any depth is read without recursion.
fn scan(text: &str, within: String) -> Option<InexactNumber> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut rest, mut is_key) = (text, false);
    while let Some(next) = rest.chars().next() {
        let mut len = next.len_utf8();
        match next {
            '{' => steps.push(Step::Member(String::new())),
            '[' => steps.push(Step::Item(0)),
            '}' | ']' => drop(steps.pop()),
            ',' => {
                if let Some(Step::Item(at)) = steps.last_mut() {
                    *at += 1;
                }
            }
            '"' => {
                len = string_len(rest);
                if let (true, Some(Step::Member(key))) = (is_key, steps.last_mut()) {
                    *key = serde_json::from_str(rest.get(..len)?).ok()?;
                }
            }
            '-' | '0'..='9' => {
                let is_number = |c: char| matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E');
                len = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
                let number = rest.get(..len)?;
                if !is_exact(number) {
                    return Some(InexactNumber {
                        path: pointer(within, &steps),
                        number: number.to_owned(),
                    });
                }
            }
            _ => {}
        }
        // A string in an object is a key until a colon follows.
        is_key = match next {
            '{' | ',' => true,
            ':' | '[' => false,
            _ => is_key,
        };
        rest = rest.get(len..)?;
    }
    None
}

/// How many bytes the string at the beginning of a text takes, with its quotes.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn pointer(within: String, steps: &[Step]) -> String {
    steps.iter().fold(within, |path, step| match step {
        Step::Member(key) => format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")),
        Step::Item(at) => format!("{path}/{at}"),
    })
}

/// Whether a value holds the number: not only nearly, and an integer as an integer.
fn is_exact(number: &str) -> bool {
    let Ok(Value::Number(held)) = serde_json::from_str(number) else {
        // What cannot be read is refused elsewhere.
        return true;
    };
    let is_integer = !number.contains(['.', 'e', 'E']);
    let digits = number.trim_start_matches('-').trim_start_matches('0');
    if is_integer && !digits.is_empty() {
        return held.is_i64() || held.is_u64();
    }
    decimal(number) == decimal(&held.to_string())
}

/// A number as its sign, its digits without zeros around them, and the place of the last digit.
fn decimal(number: &str) -> (bool, String, i64) {
    let unsigned = number.trim_start_matches('-');
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let trimmed = significant.trim_end_matches('0');
    if trimmed.is_empty() {
        return (false, String::new(), 0);
    }
    let exponent = exponent.trim_start_matches('+').parse().unwrap_or(i64::MAX / 2);
    let zeros = i64::try_from(significant.len() - trimmed.len()).unwrap_or(i64::MAX / 4);
    let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX / 4);
    (unsigned.len() < number.len(), trimmed.to_owned(), exponent + zeros - places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_exact_if_its_value_is() {
        let exact = [
            "0",
            "-0",
            "7",
            "-7",
            "18446744073709551615",
            "-9223372036854775808",
            "1.10",
            "1.5e3",
            "1E+2",
            "0.1",
            "1e-07",
            "0.000",
            "100.0",
            "123456789.125",
        ];
        for number in exact {
            assert!(is_exact(number), "{number}");
        }
        let inexact = [
            "18446744073709551616",
            "-9223372036854775809",
            "123456789012345678901234567890",
            "0.1234567890123456789",
            "1.00000000000000000001",
            "1e-400",
        ];
        for number in inexact {
            assert!(!is_exact(number), "{number}");
        }
    }

    #[test]
    fn the_place_of_a_number_is_named() {
        const LONG: &str = "123456789012345678901234567890";
        let check = |member: &str, json: &str, path: Option<&str>| {
            let found = find(member, &json.replace("LONG", LONG));
            assert_eq!(found.as_ref().map(|found| found.path.as_str()), path, "{member} {json}");
            assert!(found.is_none_or(|found| found.number == LONG));
        };
        check("metadata", r#"{"a":1,"n":LONG}"#, Some("/metadata/n"));
        check(
            "metadata",
            r#"{"s":"LONG","é\"}":[{"x/y":[1, [], LONG]}]}"#,
            Some("/metadata/é\"}/0/x~1y/2"),
        );
        check("metadata", r#"{"LONG":[{"a":"b"},"c"],"d":{}}"#, None);
        check("origin", r#"{"a":{"b":{}},"n":{"m":LONG}}"#, Some("/origin/n/m"));
        check("meta", r#"{"title":"t","metadata":{"n":LONG}}"#, Some("/meta/metadata/n"));
        check(
            "entries",
            r#"[{"message":{"n":LONG}},{"origin":{"n":LONG}}]"#,
            Some("/entries/1/origin/n"),
        );
        check("message", r#"{"metadata":{"n":LONG}}"#, None);
    }
}
