//! Usage as the Gemini API reports it: cached tokens count within the prompt, thoughts beside the candidates.

use super::block::kept;
use super::gemini::FORMAT;
use super::read::Members;
use super::write::{Mapping, Object};
use crate::{RawJson, Usage};

const TOTAL: &str = "totalTokenCount";

/// Reads a report.
pub(super) fn read(mut members: Members<'_>) -> Usage {
    let prompt: Option<u64> = members.take_as("promptTokenCount");
    let answer: Option<u64> = members.take_as("candidatesTokenCount");
    let thought: Option<u64> = members.take_as("thoughtsTokenCount");
    let cached: Option<u64> = members.take_as("cachedContentTokenCount");
    let sum = [prompt, answer, thought].into_iter().flatten().fold(0, u64::saturating_add);
    // The sum is computed when it is written; a different one is kept.
    if members.get(TOTAL).is_some_and(|total| total.get() == sum.to_string()) {
        members.take(TOTAL);
    }
    Usage {
        input: prompt.map(|prompt| prompt.saturating_sub(cached.unwrap_or(0))),
        output: answer.map(|answer| answer.saturating_add(thought.unwrap_or(0))).or(thought),
        cache_read: cached,
        cache_write: None,
        reasoning: thought,
        cost_usd: None,
        unknown: kept(FORMAT, members),
    }
}

/// Writes a report.
pub(super) fn write(usage: &Usage, mapping: &mut Mapping) -> RawJson {
    let read = [usage.input, usage.cache_read, usage.cache_write];
    let prompt = read.into_iter().flatten().fold(0, u64::saturating_add);
    let output = usage.output.unwrap_or(0);
    let thought = usage.reasoning.map(|thought| thought.min(output));
    let mut object = Object::with("promptTokenCount", prompt);
    let answer = usage.output.map(|output| output.saturating_sub(thought.unwrap_or(0)));
    object.put_some("candidatesTokenCount", answer);
    object.put_some("thoughtsTokenCount", thought);
    object.put_some("cachedContentTokenCount", usage.cache_read);
    object.put(TOTAL, prompt.saturating_add(output));
    mapping.lose_some("/usage", "cache_write", usage.cache_write.as_ref());
    mapping.lose_some("/usage", "cost_usd", usage.cost_usd.as_ref());
    object.put_back(mapping.kept("/usage", &usage.unknown, &[]));
    object.into_raw()
}
