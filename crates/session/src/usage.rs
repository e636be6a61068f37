//! Tokens and money, summed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::formats::{usage_in, usage_of};
use crate::limits::{STATE_MODELS_MAX, STATE_NAME_BYTES_MAX, USAGE_OTHER_MODELS};
use crate::text::cut_bytes;
use crate::{AgentMessage, Canonical, CustomPayload, Entry, Usage};

/// The name under which usage without a model is summed: that of tools, compactions and summaries of branches.
pub(crate) const USAGE_TOOLS_AND_SUMMARIES: &str = "tools and summaries";

/// A sum of usage reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UsageTotals {
    /// Messages, and other entries, that reported usage.
    pub messages: u64,
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from a cache.
    pub cache_read: u64,
    /// Tokens written to a cache.
    pub cache_write: u64,
    /// Tokens thought.
    pub reasoning: u64,
    /// Price in US dollars. A sum that no number holds stays at the largest one: JSON has no word for more.
    #[serde(deserialize_with = "price")]
    #[schemars(with = "f64")]
    pub cost_usd: f64,
}

/// The sum of one report.
impl From<&Usage> for UsageTotals {
    fn from(usage: &Usage) -> Self {
        Self {
            messages: 1,
            input: usage.input.unwrap_or_default(),
            output: usage.output.unwrap_or_default(),
            cache_read: usage.cache_read.unwrap_or_default(),
            cache_write: usage.cache_write.unwrap_or_default(),
            reasoning: usage.reasoning.unwrap_or_default(),
            cost_usd: usage.cost_usd.unwrap_or_default(),
        }
    }
}

/// Usage by model, with the sum of all. The number of models that are kept apart is bounded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UsageByModel {
    /// All models together.
    pub total: UsageTotals,
    /// Each model by its name.
    pub models: BTreeMap<String, UsageTotals>,
}

impl UsageTotals {
    /// Adds one report.
    pub fn add(&mut self, usage: &Usage) {
        self.add_sum(&usage.into());
    }

    /// Subtracts one report.
    pub fn remove(&mut self, usage: &Usage) {
        self.remove_sum(&usage.into());
    }

    /// Adds another sum.
    pub fn add_sum(&mut self, other: &Self) {
        self.combine(other, u64::saturating_add);
        self.cost_usd = price_sum(self.cost_usd, other.cost_usd);
    }

    /// Subtracts a part of the sum.
    pub fn remove_sum(&mut self, part: &Self) {
        self.combine(part, u64::saturating_sub);
        self.cost_usd = price_sum(self.cost_usd, -part.cost_usd);
    }

    fn combine(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64) {
        for (ours, theirs) in [
            (&mut self.messages, other.messages),
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
            (&mut self.reasoning, other.reasoning),
        ] {
            *ours = with(*ours, theirs);
        }
    }
}

impl UsageByModel {
    /// Adds one report of a model.
    pub fn add(&mut self, model: &str, usage: &Usage) {
        self.total.add(usage);
        self.slot(model).add(usage);
    }

    /// Subtracts one report of a model.
    pub fn remove(&mut self, model: &str, usage: &Usage) {
        self.total.remove(usage);
        self.slot(model).remove(usage);
    }

    /// Adds the usage that a message reports, if any.
    pub fn add_message(&mut self, message: &AgentMessage) {
        if let Some((model, usage)) = message.reported_usage() {
            self.add(&model, &usage);
        }
    }

    /// Adds the usage that an entry reports, if any: a message, or another system's line of usage.
    pub fn add_entry(&mut self, entry: &Entry) {
        match entry.canonical() {
            Canonical::Message(message) => self.add_message(&message),
            Canonical::Custom(custom) => self.add_custom(&custom),
        }
    }

    pub(crate) fn add_custom(&mut self, custom: &CustomPayload) {
        if let Some((model, usage)) = usage_of(custom) {
            self.add(&model, &usage);
        }
    }

    /// Whether nothing was reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total.messages == 0
    }

    /// Adds another sum.
    pub fn add_sum(&mut self, other: &Self) {
        self.total.add_sum(&other.total);
        for (model, totals) in &other.models {
            self.slot(model).add_sum(totals);
        }
    }

    /// Subtracts a part of the sum.
    pub fn remove_sum(&mut self, part: &Self) {
        self.total.remove_sum(&part.total);
        for (model, totals) in &part.models {
            self.slot(model).remove_sum(totals);
        }
        self.models.retain(|_, totals| totals.messages > 0);
    }

    fn slot(&mut self, model: &str) -> &mut UsageTotals {
        let model = cut_bytes(model, STATE_NAME_BYTES_MAX);
        let fits = self.models.len() < STATE_MODELS_MAX;
        let name = if fits || self.models.contains_key(model) { model } else { USAGE_OTHER_MODELS };
        self.models.entry(name.to_owned()).or_default()
    }
}

impl AgentMessage {
    /// The usage that it reports, with the name of the model.
    pub(crate) fn reported_usage(&self) -> Option<(String, Usage)> {
        match self {
            Self::Assistant(reply) => Some((reply.model.clone(), reply.usage.clone()?)),
            Self::FunctionResult(result) => usage_in(&result.details),
            Self::User(_) | Self::Custom(_) => None,
        }
    }
}

/// A sum that is always finite; a value that is not a number counts as zero.
fn price_sum(sum: f64, more: f64) -> f64 {
    let finite = |price: f64| if price.is_finite() { price } else { 0.0 };
    (finite(sum) + finite(more)).clamp(f64::MIN, f64::MAX)
}

/// Sums that were written before they were bounded are `null` if they had become infinite.
fn price<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priced(cost: f64) -> Usage {
        Usage { cost_usd: Some(cost), ..Usage::default() }
    }

    #[test]
    fn a_price_beyond_every_number_stays_a_number() {
        let mut sum = UsageTotals::default();
        for _ in 0..3 {
            sum.add(&priced(1.7e308));
        }
        assert_eq!(sum.cost_usd.to_bits(), f64::MAX.to_bits());
        let copy = sum;
        sum.add_sum(&copy);
        let text = serde_json::to_string(&sum).unwrap();
        assert_eq!(serde_json::from_str::<UsageTotals>(&text).unwrap(), sum);
        sum.remove_sum(&copy);
        for _ in 0..3 {
            sum.remove(&priced(1.7e308));
        }
        sum.add(&priced(f64::INFINITY));
        sum.add(&priced(f64::NAN));
        assert_eq!(sum.cost_usd.to_bits(), f64::MIN.to_bits());
    }

    #[test]
    fn a_sum_that_was_written_as_null_is_the_largest_number() {
        let sum: UsageTotals = serde_json::from_str(r#"{"messages":2,"cost_usd":null}"#).unwrap();
        assert_eq!((sum.messages, sum.cost_usd.to_bits()), (2, f64::MAX.to_bits()));
        let none: UsageTotals = serde_json::from_str("{}").unwrap();
        assert_eq!(none, UsageTotals::default());
    }
}
