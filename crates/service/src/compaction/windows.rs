//! The context windows of models, by the model's name.

use std::collections::BTreeMap;

use bough_session::SessionDetails;

/// Windows of models by the beginning of their names, in tokens. The longest matching beginning counts, so a newer
/// member of a family may have a window of its own.
const KNOWN: &[(&str, u64)] = &[
    ("claude-", 200_000),
    ("claude-instant", 100_000),
    ("claude-2.0", 100_000),
    ("codestral", 256_000),
    ("command-a", 256_000),
    ("command-r", 128_000),
    ("deepseek-", 128_000),
    ("devstral", 128_000),
    ("gemini-", 1_048_576),
    ("gemini-1.5-pro", 2_097_152),
    ("gemini-pro", 32_768),
    ("gemma-2", 8_192),
    ("gemma-3", 128_000),
    ("glm-4", 128_000),
    ("glm-4.6", 200_000),
    ("gpt-3.5-turbo", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-turbo", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4.5", 128_000),
    ("gpt-4o", 128_000),
    ("gpt-5", 400_000),
    ("gpt-oss", 131_072),
    ("grok-2", 131_072),
    ("grok-3", 131_072),
    ("grok-4", 256_000),
    ("grok-4-fast", 2_000_000),
    ("grok-code-fast", 256_000),
    ("kimi-k2", 262_144),
    ("llama-3", 8_192),
    ("llama-3.1", 128_000),
    ("llama-3.2", 128_000),
    ("llama-3.3", 128_000),
    ("llama-4", 1_000_000),
    ("minimax-m2", 204_800),
    ("mistral-large", 128_000),
    ("mistral-medium", 128_000),
    ("mistral-small", 128_000),
    ("o1", 200_000),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("qwen2.5", 131_072),
    ("qwen3", 131_072),
    ("qwen3-coder", 262_144),
    ("qwen3-max", 262_144),
];

/// The windows that are known, and those that a configuration adds or corrects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelWindows {
    configured: BTreeMap<String, u64>,
}

impl ModelWindows {
    /// The known windows together with configured ones: tokens by the beginning of a model's name.
    #[must_use]
    pub fn with(configured: &BTreeMap<String, u64>) -> Self {
        let lower = configured.iter().map(|(name, tokens)| (name.to_lowercase(), *tokens));
        Self { configured: lower.collect() }
    }

    /// The window of a session's model. A configured window wins over the one that the recorded loops name, and that one
    /// over the known windows.
    #[must_use]
    pub fn of_session(&self, details: &SessionDetails) -> Option<u64> {
        let model = details.model.as_ref().map(|name| name.model.as_str());
        let configured = model.and_then(|model| self.configured(model));
        configured.or(details.context_window).or_else(|| model.and_then(known))
    }

    /// The window of a model by its name alone.
    #[must_use]
    pub fn of_model(&self, model: &str) -> Option<u64> {
        self.configured(model).or_else(|| known(model))
    }

    fn configured(&self, model: &str) -> Option<u64> {
        longest(model, self.configured.iter().map(|(name, tokens)| (name.as_str(), *tokens)))
    }
}

fn known(model: &str) -> Option<u64> {
    longest(model, KNOWN.iter().copied())
}

/// The tokens of the longest beginning of a model's name. A name may have a vendor in front: `anthropic/claude-sonnet-4`.
fn longest<'a>(model: &str, windows: impl Iterator<Item = (&'a str, u64)>) -> Option<u64> {
    let model = model.to_lowercase();
    let bare = model.rsplit('/').next().unwrap_or_default();
    // Some vendors separate with dots: `us.anthropic.claude-sonnet-4`.
    let after_vendor = bare.rsplit_once("anthropic.").map_or(bare, |(_, name)| name);
    let fits = |name: &str| [&model, bare, after_vendor].iter().any(|text| text.starts_with(name));
    let found = windows.filter(|(name, _)| !name.is_empty() && fits(name));
    found.max_by_key(|(name, _)| name.len()).map(|(_, tokens)| tokens)
}

#[cfg(test)]
mod tests {
    use bough_session::ModelName;

    use super::*;

    #[test]
    fn the_longest_beginning_of_a_name_counts() {
        let windows = ModelWindows::default();
        let check = |model: &str, tokens| assert_eq!(windows.of_model(model), tokens, "{model}");
        check("claude-sonnet-4-5-20250929", Some(200_000));
        check("anthropic/claude-opus-4.1", Some(200_000));
        check("us.anthropic.claude-sonnet-4-20250514-v1:0", Some(200_000));
        check("gpt-4", Some(8_192));
        check("GPT-4.1-mini", Some(1_047_576));
        check("models/gemini-2.5-pro", Some(1_048_576));
        check("my-own-model", None);
        check("", None);
    }

    #[test]
    fn configured_windows_win() {
        let configured = BTreeMap::from([
            ("claude-sonnet-4".to_owned(), 1_000_000),
            ("My-Own".to_owned(), 32_000),
        ]);
        let windows = ModelWindows::with(&configured);
        assert_eq!(windows.of_model("claude-sonnet-4-5"), Some(1_000_000));
        assert_eq!(windows.of_model("claude-opus-4"), Some(200_000));
        assert_eq!(windows.of_model("my-own-model"), Some(32_000));
        let details = |model: &str, context_window| SessionDetails {
            model: Some(ModelName { provider: "p".into(), model: model.into() }),
            context_window,
            ..SessionDetails::default()
        };
        let check = |model, said, tokens| {
            assert_eq!(windows.of_session(&details(model, said)), tokens, "{model}");
        };
        check("my-own", Some(5), Some(32_000));
        check("claude-opus-4", Some(5), Some(5));
        check("claude-opus-4", None, Some(200_000));
        check("unheard-of", None, None);
        assert_eq!(windows.of_session(&SessionDetails::default()), None);
    }
}
