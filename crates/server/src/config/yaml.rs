//! YAML in and out, by way of JSON values.
//!
//! The configuration is deserialised from the value, so that an error names the field. Placeholders (`${VAR:default}`)
//! are replaced in strings of the value, never in the text, so a value of the environment cannot become syntax. The
//! reader has budgets against documents that explode by aliases, depth or size.

use std::fmt::Write as _;

use serde_json::Value;

/// Reads one YAML document; an empty one is an empty mapping.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(is_blank) {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let value: Value = serde_saphyr::from_str(text).map_err(|error| reason(&error, text))?;
    match value {
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        Value::Object(_) => Ok(value),
        _ => Err("the file must be a mapping of names to values".to_owned()),
    }
}

/// What is wrong and where, without any text of the file: it may hold secrets, and others read the reason.
fn reason(error: &serde_saphyr::Error, text: &str) -> String {
    // The message includes the position.
    let what = error.without_snippet().to_string();
    let Some(location) = error.location() else {
        return "it cannot be read".to_owned();
    };
    let (line, column) = (location.line(), location.column());
    let row = usize::try_from(line).ok().and_then(|line| text.lines().nth(line.checked_sub(1)?));
    let row = row.unwrap_or_default();
    let value = row.split_once(':').map_or(row, |(_, value)| value);
    let is_word = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let mut words = value.split(|c| !is_word(c)).filter(|word| !word.is_empty());
    if words.any(|word| what.contains(word)) {
        return format!("it cannot be read at line {line}, column {column}");
    }
    what
}

/// Writes a value as YAML that [`read`] reads back.
pub(crate) fn write(value: &Value) -> String {
    let mut out = String::new();
    write_block(&mut out, value, 0);
    out
}

fn write_block(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) => {
            for (key, item) in map {
                indent(out, depth);
                out.push_str(&scalar(&Value::String(key.clone())));
                out.push(':');
                write_item(out, item, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                indent(out, depth);
                out.push('-');
                write_item(out, item, depth);
            }
        }
        plain => {
            indent(out, depth);
            out.push_str(&scalar(plain));
            out.push('\n');
        }
    }
}

fn write_item(out: &mut String, item: &Value, depth: usize) {
    let is_filled = match item {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if is_filled {
        out.push('\n');
        write_block(out, item, depth + 1);
    } else {
        // Writing to a String cannot fail.
        let _ = writeln!(out, " {}", scalar(item));
    }
}

fn indent(out: &mut String, depth: usize) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// A scalar (or an empty list or mapping) as JSON, which YAML reads; without quotes where that is safe.
fn scalar(value: &Value) -> String {
    const WORDS: [&str; 8] = ["true", "false", "null", "yes", "no", "on", "off", "y"];
    if let Value::String(text) = value {
        let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
            && !WORDS.contains(&text.to_ascii_lowercase().as_str());
        if plain && text != "n" {
            return text.clone();
        }
    }
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read_back() {
        let values = [
            json!({}),
            json!({"listen": "127.0.0.1:7717", "bus": "off", "n": 5, "flag": true, "none": null}),
            json!({"adapter": {"name": "fs", "config": {"data_dir": "~/x y: #z", "list": [], "map": {}}}}),
            json!({"hosts": ["a.example", "b", {"deep": [1, 2]}], "odd key:": "a\nb\t\"c\""}),
            json!({"word": "yes", "number": "12", "dash": "-", "text": "no ${VAR:x}"}),
        ];
        for value in values {
            let text = write(&value);
            assert_eq!(read(&text).unwrap(), value, "{text}");
        }
    }

    #[test]
    fn a_reason_says_where_and_never_what() {
        for secret in ["\"SECRET\" extra", "\"SECRET", "*SECRET", "[SECRET", "{SECRET: }}"] {
            let reason = read(&format!("a: 1\nb:\n  token: {secret}\n")).unwrap_err();
            assert!(!reason.contains("SECRET"), "{reason}");
            assert!(reason.contains("line "), "{reason}");
        }
    }

    #[test]
    fn only_a_mapping_is_a_configuration() {
        assert_eq!(read("").unwrap(), json!({}));
        assert_eq!(read("# only words\n\n").unwrap(), json!({}));
        assert!(read("- a\n- b\n").is_err());
        assert!(read("a: [1").is_err());
        assert!(read("a: 1\na: 2\n").is_err(), "a key that is there twice");
    }
}
