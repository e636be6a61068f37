//! Usage as events and session files have it: six numbers. Their total is what the provider counts, which is not always
//! the sum of the others.

use bough_session::{FORMAT_PHI, RawJson, UnknownMembers, Usage};
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

/// The six numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Figures {
    pub(crate) input: u64,
    pub(crate) output: u64,
    #[serde(default)]
    pub(crate) reasoning: u64,
    #[serde(default)]
    pub(crate) cache_read: u64,
    #[serde(default)]
    pub(crate) cache_write: u64,
    #[serde(default)]
    pub(crate) total_tokens: u64,
}

/// The total as a canonical usage keeps it: under the format's name.
#[derive(serde::Serialize, serde::Deserialize)]
struct Kept {
    total_tokens: u64,
}

impl Figures {
    const fn parts_sum(&self) -> u64 {
        let (read, cached) = (self.input.saturating_add(self.output), self.cache_read);
        read.saturating_add(cached).saturating_add(self.cache_write)
    }

    /// Both together. Counts stop at the largest number instead of wrapping.
    const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
        }
    }
}

impl From<&Usage> for Figures {
    fn from(usage: &Usage) -> Self {
        let mut figures = Self {
            input: usage.input.unwrap_or_default(),
            output: usage.output.unwrap_or_default(),
            reasoning: usage.reasoning.unwrap_or_default(),
            cache_read: usage.cache_read.unwrap_or_default(),
            cache_write: usage.cache_write.unwrap_or_default(),
            total_tokens: 0,
        };
        let kept = usage.unknown.get(FORMAT_PHI);
        let kept = kept.and_then(|kept| serde_json::from_str::<Kept>(kept.get()).ok());
        figures.total_tokens = kept.map_or_else(|| figures.parts_sum(), |kept| kept.total_tokens);
        figures
    }
}

impl From<Figures> for Usage {
    fn from(figures: Figures) -> Self {
        let mut unknown = UnknownMembers::NONE;
        if figures.total_tokens != figures.parts_sum() {
            let kept = RawJson::of(&Kept { total_tokens: figures.total_tokens });
            unknown.set(FORMAT_PHI, kept.unwrap_or_default());
        }
        Self {
            input: Some(figures.input),
            output: Some(figures.output),
            cache_read: Some(figures.cache_read),
            cache_write: Some(figures.cache_write),
            reasoning: Some(figures.reasoning),
            cost_usd: None,
            unknown,
        }
    }
}

/// All tokens of a report together, as the provider counts them.
#[must_use]
pub fn total_tokens(usage: &Usage) -> u64 {
    Figures::from(usage).total_tokens
}

/// The usage as a record has it: with every number, and without the price, which stays with its message.
pub(crate) fn recorded(usage: &Usage) -> Usage {
    Figures::from(usage).into()
}

/// No usage, as a record has it.
pub(crate) fn none() -> Usage {
    Figures::default().into()
}

/// All of them together.
pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a Usage>) -> Usage {
    all.map(Figures::from).fold(Figures::default(), Figures::plus).into()
}

pub(crate) fn serialize<S: Serializer>(usage: &Usage, serializer: S) -> Result<S::Ok, S::Error> {
    Figures::from(usage).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Usage, D::Error> {
    Figures::deserialize(deserializer).map(Usage::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_that_is_not_the_sum_is_kept() {
        let text = r#"{"input":1,"output":2,"reasoning":3,"cache_read":4,"cache_write":5,"total_tokens":99}"#;
        let usage = deserialize(&mut serde_json::Deserializer::from_str(text)).unwrap();
        assert_eq!((usage.input, total_tokens(&usage)), (Some(1), 99));
        assert_eq!(serde_json::to_string(&Figures::from(&usage)).unwrap(), text);
        let twice = sum([&usage, &usage].into_iter());
        assert_eq!((twice.output, total_tokens(&twice)), (Some(4), 198));
    }

    #[test]
    fn a_record_has_every_number_and_no_price() {
        let given = Usage { input: Some(3), cost_usd: Some(0.5), ..Usage::default() };
        let usage = recorded(&given);
        assert_eq!((usage.input, usage.output, usage.cost_usd), (Some(3), Some(0), None));
        assert_eq!(total_tokens(&usage), 3);
        assert_eq!(recorded(&usage), usage);
        assert_eq!(recorded(&Usage::default()), none());
    }
}
