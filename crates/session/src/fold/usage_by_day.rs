use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::{
    STATE_NAME_BYTES_MAX, STATE_USAGE_ROWS_MAX, USAGE_GAP_MAX_MS, USAGE_OTHER_NAMES,
};
use crate::text::cut_bytes;
use crate::usage::UsageTotals;
use crate::{AgentMessage, Usage};

/// Milliseconds of a day. Days are those of UTC.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Who used something.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum UsageOf {
    /// A model.
    Model,
    /// A tool.
    Tool,
}

/// What a model or a tool used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Used {
    /// Tokens and money. Of a tool, `messages` counts its results.
    #[serde(flatten)]
    pub totals: UsageTotals,
    /// Results that say that the tool failed.
    pub errors: u64,
    /// How long it took, milliseconds.
    pub time_ms: u64,
}

impl Used {
    /// Adds another sum.
    pub fn add_sum(&mut self, other: &Self) {
        self.totals.add_sum(&other.totals);
        self.errors = self.errors.saturating_add(other.errors);
        self.time_ms = self.time_ms.saturating_add(other.time_ms);
    }
}

/// A day, whether a model or a tool used something, and its name.
pub type UsageKey = (i64, UsageOf, String);

/// What the models and tools of a session used, day by day.
///
/// Days are counted from the epoch. A model's time is the time between the entry before and its message, or from the
/// beginning of a streamed message to its end. A tool's time is the time between the message that called it and its
/// result. Pauses longer than [`USAGE_GAP_MAX_MS`] do not count. There are at most [`STATE_USAGE_ROWS_MAX`] rows:
/// beyond that, names of a day are joined as [`USAGE_OTHER_NAMES`], and the oldest days become one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsageByDay {
    rows: BTreeMap<UsageKey, Used>,
    /// When the entry before was written.
    last_at: Option<i64>,
    /// When a model spoke last.
    spoke_at: Option<i64>,
}

impl UsageByDay {
    /// Sums whose day alone is known.
    #[must_use]
    pub fn on_one_day(at_ms: i64, models: &BTreeMap<String, UsageTotals>) -> Self {
        let day = at_ms.div_euclid(DAY_MS);
        let row = |(name, totals): (&String, &UsageTotals)| {
            let used = Used { totals: *totals, ..Used::default() };
            ((day, UsageOf::Model, name.clone()), used)
        };
        Self { rows: models.iter().map(row).collect(), ..Self::default() }
    }

    /// The rows, the oldest day first.
    pub fn iter(&self) -> impl Iterator<Item = (&UsageKey, &Used)> {
        self.rows.iter()
    }

    /// Notes an entry that uses nothing.
    pub(super) fn pass(&mut self, at_ms: i64) {
        self.last_at = Some(at_ms);
    }

    /// Adds a message. The usage of a streaming message is known when it is finished.
    pub(super) fn add_message(&mut self, message: &AgentMessage, streams: bool, at_ms: i64) {
        match message {
            AgentMessage::Assistant(reply) => {
                let time_ms = since(self.last_at, at_ms);
                if !streams && !reply.model.is_empty() {
                    let used = self.used(at_ms, UsageOf::Model, &reply.model);
                    used.time_ms = used.time_ms.saturating_add(time_ms);
                }
                self.spoke_at = Some(at_ms);
            }
            AgentMessage::FunctionResult(result) => {
                let time_ms = since(self.spoke_at, at_ms);
                let used = self.used(at_ms, UsageOf::Tool, &result.function_id);
                used.totals.messages = used.totals.messages.saturating_add(1);
                used.errors = used.errors.saturating_add(u64::from(result.is_error));
                used.time_ms = used.time_ms.saturating_add(time_ms);
            }
            AgentMessage::User(_) | AgentMessage::Custom(_) => {}
        }
        self.last_at = Some(at_ms);
    }

    /// Adds the end of a message that streamed.
    pub(super) fn finish(&mut self, model: Option<&str>, at_ms: i64) {
        let time_ms = since(self.last_at, at_ms);
        if let Some(model) = model {
            let used = self.used(at_ms, UsageOf::Model, model);
            used.time_ms = used.time_ms.saturating_add(time_ms);
        }
        (self.last_at, self.spoke_at) = (Some(at_ms), Some(at_ms));
    }

    /// Adds what a model reported.
    pub(super) fn add(&mut self, model: &str, usage: &Usage, at_ms: i64) {
        self.used(at_ms, UsageOf::Model, model).totals.add(usage);
    }

    /// Removes a report of a model, from the newest day that has one.
    pub(super) fn remove(&mut self, model: &str, usage: &Usage) {
        let name = cut_bytes(model, STATE_NAME_BYTES_MAX);
        let is_its = |(_, of, known): &UsageKey| *of == UsageOf::Model && known == name;
        let found = self.rows.iter_mut().rev().find(|(key, _)| is_its(key));
        if let Some((_, used)) = found {
            used.totals.remove(usage);
        }
    }

    fn used(&mut self, at_ms: i64, of: UsageOf, name: &str) -> &mut Used {
        let day = at_ms.div_euclid(DAY_MS);
        let name = cut_bytes(name, STATE_NAME_BYTES_MAX);
        let mut key = (day, of, name.to_owned());
        if !self.rows.contains_key(&key) && self.rows.len() >= STATE_USAGE_ROWS_MAX {
            key.2 = USAGE_OTHER_NAMES.to_owned();
            if !self.rows.contains_key(&key) {
                self.join_oldest();
            }
        }
        self.rows.entry(key).or_default()
    }

    /// Frees a row: joins the names of a kind on the oldest day that has several, or else the two oldest days.
    fn join_oldest(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        let several = rows.keys().zip(rows.keys().skip(1)).find(|(a, b)| a.0 == b.0 && a.1 == b.1);
        let joined = several.map(|(key, _)| (key.0, key.1));
        let oldest = rows.keys().next().map(|key| key.0);
        let second = rows.keys().map(|key| key.0).find(|day| Some(*day) > oldest);
        for ((mut day, of, mut name), used) in rows {
            match joined {
                Some(joined) if joined == (day, of) => USAGE_OTHER_NAMES.clone_into(&mut name),
                None if Some(day) == oldest => day = second.unwrap_or(day),
                _ => {}
            }
            self.rows.entry((day, of, name)).or_default().add_sum(&used);
        }
    }
}

/// The time between two moments of work.
fn since(before: Option<i64>, at_ms: i64) -> u64 {
    let gap = before.map_or(0, |before| at_ms.saturating_sub(before));
    if gap > USAGE_GAP_MAX_MS { 0 } else { u64::try_from(gap).unwrap_or(0) }
}

/// The stored form: a list of rows, because keys of JSON are texts.
#[derive(Serialize, Deserialize)]
struct Kept {
    rows: Vec<KeptRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spoke_at: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct KeptRow {
    day: i64,
    of: UsageOf,
    name: String,
    #[serde(flatten)]
    used: Used,
}

impl Serialize for UsageByDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = |((day, of, name), used): (&UsageKey, &Used)| KeptRow {
            day: *day,
            of: *of,
            name: name.clone(),
            used: *used,
        };
        let rows = self.rows.iter().map(row).collect();
        Kept { rows, last_at: self.last_at, spoke_at: self.spoke_at }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for UsageByDay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Kept { rows, last_at, spoke_at } = Kept::deserialize(deserializer)?;
        let rows = rows.into_iter().map(|row| ((row.day, row.of, row.name), row.used)).collect();
        Ok(Self { rows, last_at, spoke_at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(output: u64) -> Usage {
        Usage { output: Some(output), ..Usage::default() }
    }

    fn total(usage: &UsageByDay) -> u64 {
        usage.iter().map(|(_, used)| used.totals.output).sum()
    }

    #[test]
    fn rows_are_bounded_and_nothing_is_lost_of_the_sum() {
        let mut usage = UsageByDay::default();
        for day in 0..400 {
            for model in ["a", "b"] {
                usage.add(model, &report(1), day * DAY_MS);
            }
        }
        assert!(usage.rows.len() <= STATE_USAGE_ROWS_MAX);
        assert_eq!(total(&usage), 800);
        let newest = (399, UsageOf::Model, USAGE_OTHER_NAMES.to_owned());
        assert!(usage.rows.contains_key(&newest) || usage.rows.keys().any(|key| key.0 == 399));
    }

    #[test]
    fn it_is_kept_as_it_was() {
        let mut usage = UsageByDay::default();
        usage.add("a", &report(3), 5);
        usage.finish(Some("a"), 9);
        let text = serde_json::to_string(&usage).unwrap();
        assert_eq!(serde_json::from_str::<UsageByDay>(&text).unwrap(), usage);
    }

    #[test]
    fn a_long_pause_is_no_work() {
        assert_eq!(since(Some(0), USAGE_GAP_MAX_MS), USAGE_GAP_MAX_MS.unsigned_abs());
        assert_eq!(since(Some(0), USAGE_GAP_MAX_MS + 1), 0);
        assert_eq!((since(None, 7), since(Some(9), 7)), (0, 0));
    }
}
