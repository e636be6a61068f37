//! The two shapes in which OpenAI's APIs report usage. Both count cached tokens within the input.

use super::Format;
use super::block::kept_members;
use super::read::Members;
use super::write::{Mapping, Object, set_members, take_members};
use crate::{RawJson, Usage};

/// The names of one shape.
pub(super) struct Names {
    pub(super) format: Format,
    pub(super) input: &'static str,
    pub(super) input_details: &'static str,
    pub(super) output: &'static str,
    pub(super) output_details: &'static str,
}

const CACHED: &str = "cached_tokens";
const REASONING: &str = "reasoning_tokens";
const TOTAL: &str = "total_tokens";

impl Names {
    /// Reads a report.
    pub(super) fn read(&self, mut members: Members<'_>) -> Usage {
        let input: Option<u64> = members.take_as(self.input);
        let output: Option<u64> = members.take_as(self.output);
        let mut input_details = members.take_object(self.input_details);
        let mut output_details = members.take_object(self.output_details);
        let cached: Option<u64> = input_details.as_mut().and_then(|all| all.take_as(CACHED));
        let reasoning = output_details.as_mut().and_then(|all| all.take_as(REASONING));
        let sum = input.unwrap_or(0).saturating_add(output.unwrap_or(0));
        // The sum is computed when it is written; a different one is kept.
        if members.get(TOTAL).is_some_and(|total| total.get() == sum.to_string()) {
            members.take(TOTAL);
        }
        let mut rest = members.into_unknown();
        for (name, details) in
            [(self.input_details, input_details), (self.output_details, output_details)]
        {
            set_members(&mut rest, name, &details.unwrap_or_default().into_unknown());
        }
        Usage {
            input: input.map(|input| input.saturating_sub(cached.unwrap_or(0))),
            output,
            cache_read: cached,
            cache_write: None,
            reasoning,
            cost_usd: None,
            unknown: kept_members(self.format, rest),
        }
    }

    /// Writes a report.
    pub(super) fn write(&self, usage: &Usage, mapping: &mut Mapping) -> RawJson {
        // Tokens that were written to a cache count as input too.
        let read = [usage.input, usage.cache_read, usage.cache_write];
        let input = read.into_iter().flatten().fold(0, u64::saturating_add);
        let output = usage.output.unwrap_or(0);
        let mut kept = mapping.kept("/usage", &usage.unknown, &[]);
        let mut object = Object::with(self.input, input);
        object.put(self.output, output);
        object.put(TOTAL, input.saturating_add(output));
        for (name, key, figure) in [
            (self.input_details, CACHED, usage.cache_read),
            (self.output_details, REASONING, usage.reasoning),
        ] {
            let mut details = Object::default().and_some(key, figure).into_members();
            details.extend(take_members(&mut kept, name));
            if !details.is_empty() {
                object.put(name, details);
            }
        }
        mapping.lose_some("/usage", "cache_write", usage.cache_write.as_ref());
        mapping.lose_some("/usage", "cost_usd", usage.cost_usd.as_ref());
        object.put_back(kept);
        object.into_raw()
    }
}
