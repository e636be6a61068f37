//! The script of an agent whose events are recorded: loops, parallel loops, sub-agents, a compaction.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

const SCRIPT: &str = include_str!("agent_run.json");
const NIGHTLY: &str = include_str!("nightly_run.json");

/// The page that [`SCRIPT`] is about, and others that live runs are about, one after the other.
const PAGE: &str = "report";
const LIVE_PAGES: [&str; 4] = ["invoice", "order", "account", "calendar"];

/// An agent at work, from its first question to its last answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentRun {
    pub(crate) title: String,
    pub(crate) project: String,
    pub(crate) agent: String,
    /// The model of the loops that name none.
    pub(crate) model: String,
    /// Seconds from its beginning until now.
    pub(crate) ago: i64,
    pub(crate) steps: Vec<RunStep>,
    pub(crate) sub_agents: BTreeMap<String, SubAgent>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunStep {
    Loop(LoopScript),
    Parallel(ParallelScript),
    Compaction(CompactionScript),
    /// Nothing happens for so many seconds.
    Pause(i64),
}

/// An agent that a tool of another one runs, in a session of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubAgent {
    pub(crate) title: String,
    pub(crate) agent: String,
    #[serde(rename = "loop")]
    pub(crate) work: LoopScript,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoopScript {
    pub(crate) name: String,
    /// The name of the loop before it.
    #[serde(default)]
    pub(crate) after: Option<String>,
    #[serde(default)]
    pub(crate) kind: LoopKind,
    #[serde(default)]
    pub(crate) model: Option<String>,
    pub(crate) user: String,
    pub(crate) turns: Vec<TurnScript>,
    /// Why the question was refused.
    #[serde(default)]
    pub(crate) rejected: Option<String>,
}

/// How a loop relates to the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LoopKind {
    /// It continues the loop before it, or begins.
    #[default]
    Next,
    Rerun,
    Branch,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnScript {
    /// How long the model takes.
    pub(crate) seconds: i64,
    #[serde(default)]
    pub(crate) thinking: Option<String>,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) calls: Vec<CallScript>,
    pub(crate) usage: TurnUsage,
    /// What went wrong.
    #[serde(default)]
    pub(crate) failure: Option<String>,
}

/// A call of a tool. The calls of a turn run in parallel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallScript {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    /// The sub-agent that it runs, whose last message is then the result.
    #[serde(default)]
    pub(crate) sub_agent: Option<String>,
    #[serde(default)]
    pub(crate) seconds: i64,
    #[serde(default)]
    pub(crate) result: String,
    #[serde(default)]
    pub(crate) is_error: bool,
}

/// Loops from the same start, of which one is chosen.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParallelScript {
    pub(crate) loops: Vec<LoopScript>,
    /// The chosen one, from 0.
    pub(crate) winner: usize,
    /// What choosing cost.
    pub(crate) choosing: TurnUsage,
}

/// A summary that replaces the loops in the context from here on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompactionScript {
    pub(crate) loops: Vec<String>,
    pub(crate) summary: String,
    pub(crate) seconds: i64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnUsage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
}

impl AgentRun {
    pub(crate) fn read() -> Result<Self, serde_json::Error> {
        serde_json::from_str(SCRIPT)
    }

    /// The same work on another page, for each round of a live demo.
    pub(crate) fn read_live(round: usize) -> Result<Self, serde_json::Error> {
        let page = LIVE_PAGES.get(round % LIVE_PAGES.len()).unwrap_or(&PAGE);
        serde_json::from_str(&SCRIPT.replace(PAGE, page))
    }

    /// An agent that was at work for a few minutes of each of the last weeks' days.
    pub(crate) fn read_nightly() -> Result<Self, serde_json::Error> {
        serde_json::from_str(NIGHTLY)
    }
}

impl LoopScript {
    /// The last words of the agent.
    pub(crate) fn answer(&self) -> &str {
        self.turns.last().map_or("", |turn| &turn.text)
    }
}

impl TurnUsage {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
        }
    }

    /// What it cost, at the prices of a model of today.
    pub(crate) fn cost_usd(self) -> f64 {
        const USD_PER_MILLION: [f64; 3] = [3.0, 15.0, 0.3];
        let Self { input, output, cache_read } = self;
        let tokens =
            [input, output, cache_read].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let prices =
            tokens.iter().zip(USD_PER_MILLION).map(|(count, price)| f64::from(*count) * price);
        prices.sum::<f64>() / 1e6
    }

    /// As events carry it.
    pub(crate) fn to_json(self) -> Value {
        let Self { input, output, cache_read } = self;
        json!({
            "input": input, "output": output, "reasoning": 0, "cache_read": cache_read, "cache_write": 0,
            "total_tokens": input.saturating_add(output).saturating_add(cache_read),
        })
    }
}
