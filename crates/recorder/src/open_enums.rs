//! Enums that later versions may extend: an unknown word is kept as it came.

use compact_str::CompactString;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal $(| $alias:literal)*,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
            /// A word that this version does not know.
            Other(String),
        }

        impl $name {
            /// The word as it is written.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word $(| $alias)* => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = CompactString::deserialize(deserializer)?;
                Ok(Self::from(word.as_str()))
            }
        }
    };
}

words! {
    /// How much a model thinks before it answers.
    ThinkingLevel {
        /// Not at all.
        Off = "off",
        /// Hardly.
        Minimal = "minimal",
        /// A little.
        Low = "low",
        /// Some.
        Medium = "medium",
        /// Much.
        High = "high",
    }
}

words! {
    /// The protocol that a model is called by.
    ApiProtocol {
        /// Anthropic messages.
        AnthropicMessages = "anthropic_messages",
        /// OpenAI completions.
        OpenAiCompletions = "open_ai_completions",
        /// OpenAI responses.
        OpenAiResponses = "open_ai_responses",
        /// OpenAI responses at Azure.
        AzureOpenAiResponses = "azure_open_ai_responses",
        /// Google's generative AI.
        GoogleGenerativeAi = "google_generative_ai",
        /// Google Vertex.
        GoogleVertex = "google_vertex",
        /// Bedrock's converse stream.
        BedrockConverseStream = "bedrock_converse_stream",
    }
}

words! {
    /// What made a turn begin.
    TurnTrigger {
        /// A message of the user's.
        User = "User",
        /// A parent agent.
        SubAgent = "SubAgent",
        /// The loop goes on: a tool's answer, a steering message, a continuation.
        Continuation = "Continuation" | "FollowUp",
        /// A branch was opened.
        Branch = "Branch",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_are_known_and_others_are_kept() {
        let check = |word: &str, written: &str| {
            let trigger: TurnTrigger = serde_json::from_value(word.into()).unwrap();
            assert_eq!(trigger.as_str(), written);
        };
        check("User", "User");
        check("FollowUp", "Continuation");
        check("Telepathy", "Telepathy");

        assert_eq!(ApiProtocol::from("openai_completions").as_str(), "openai_completions");
    }
}
