//! `${VAR}` and `${VAR:default}` in the values of a configuration.

use serde_json::Value;

/// Looks up an environment variable.
pub type Lookup<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// Replaces the placeholders in every text of a value. A text that is a single placeholder becomes what its replacement
/// would be in the file: a number, a truth value, or text.
pub(crate) fn expand(value: Value, lookup: Lookup<'_>) -> Result<Value, PlaceholderError> {
    match value {
        Value::String(text) => expand_text(&text, lookup),
        Value::Array(items) => {
            let items: Result<_, _> = items.into_iter().map(|item| expand(item, lookup)).collect();
            Ok(Value::Array(items?))
        }
        Value::Object(map) => {
            let pairs = map.into_iter().map(|(key, item)| {
                let item = expand(item, lookup).map_err(|error| error.below(&key))?;
                Ok((key, item))
            });
            Ok(Value::Object(pairs.collect::<Result<_, _>>()?))
        }
        plain => Ok(plain),
    }
}

/// A placeholder that cannot be replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceholderError {
    /// It has no end.
    #[error("`{field}` has a `${{` without `}}`; close it, or write `$${{` for a literal one")]
    Unclosed {
        /// Where it is; not the text, which may be a secret.
        field: String,
    },
    /// The variable is not set and there is no default.
    #[error(
        "the environment variable {name} is not set; set it, or give a default as in ${{{name}:value}}"
    )]
    NotSet {
        /// The variable.
        name: String,
    },
}

impl PlaceholderError {
    /// The same of a value that lies below `key`.
    fn below(self, key: &str) -> Self {
        match self {
            Self::Unclosed { field } if field.is_empty() => {
                Self::Unclosed { field: key.to_owned() }
            }
            Self::Unclosed { field } => Self::Unclosed { field: format!("{key}.{field}") },
            other => other,
        }
    }
}

fn expand_text(text: &str, lookup: Lookup<'_>) -> Result<Value, PlaceholderError> {
    let mut out = String::new();
    let mut rest = text;
    let mut only_placeholder = false;
    while let Some(at) = rest.find("${") {
        let (before, after) = rest.split_at(at);
        let after = after.strip_prefix("${").unwrap_or(after);
        if let Some(literal) = before.strip_suffix('$') {
            out.push_str(literal);
            out.push_str("${");
            rest = after;
            continue;
        }
        let end =
            after.find('}').ok_or_else(|| PlaceholderError::Unclosed { field: String::new() })?;
        let (inside, after) = after.split_at(end);
        let after = after.strip_prefix('}').unwrap_or(after);
        only_placeholder = before.is_empty() && after.is_empty() && out.is_empty();
        out.push_str(before);
        out.push_str(&replacement(inside, lookup)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(if only_placeholder { plain_scalar(out) } else { Value::String(out) })
}

fn replacement(inside: &str, lookup: Lookup<'_>) -> Result<String, PlaceholderError> {
    let (name, default) = match inside.split_once(':') {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let set = lookup(name).filter(|value| !value.is_empty());
    set.or_else(|| default.map(str::to_owned))
        .ok_or_else(|| PlaceholderError::NotSet { name: name.to_owned() })
}

fn plain_scalar(text: String) -> Value {
    match serde_json::from_str(&text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Null)) => value,
        _ => Value::String(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "DIR" => Some("/data".to_owned()),
            "LIMIT" => Some("20".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    fn check(given: Value, expected: Value) {
        assert_eq!(expand(given, &lookup).unwrap(), expected);
    }

    #[test]
    fn placeholders_are_replaced_everywhere_and_keep_their_type() {
        check(json!("${DIR}/x"), json!("/data/x"));
        check(
            json!({"a": ["${LIMIT}", "${NONE:50}", "${EMPTY:on}"]}),
            json!({"a": [20, 50, "on"]}),
        );
        check(json!("${NONE:ws://127.0.0.1:49134}"), json!("ws://127.0.0.1:49134"));
        check(json!("${DIR}${DIR}"), json!("/data/data"));
        check(json!("${NONE:}"), json!(""));
        check(json!(5), json!(5));
    }

    #[test]
    fn a_doubled_dollar_is_literal() {
        check(json!("$${DIR}"), json!("${DIR}"));
        check(json!("cost $5"), json!("cost $5"));
    }

    #[test]
    fn what_cannot_be_replaced_is_refused() {
        let refused = expand(json!("${NONE}"), &lookup).unwrap_err();
        assert!(refused.to_string().contains("NONE is not set"));
        let refused = expand(json!({"a": {"token": "SECRET${DIR"}}), &lookup).unwrap_err();
        assert!(refused.to_string().starts_with("`a.token` has a `${` without `}`;"), "{refused}");
    }
}
