use bough_session::{
    AgentMessage, ContentBlock, EntryBody, FunctionResultMessage, MetaChange, NewRecord, RawJson,
};
use serde_json::json;

use super::Factory;
use super::make::{assistant, create, entry, id, map, meta, push};
use crate::{Store, UsageGroup, UsageQuery, UsageReport};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn by(groups: &[UsageGroup]) -> UsageQuery {
    UsageQuery { by: groups.to_vec(), limit: 100, ..UsageQuery::default() }
}

fn spent(name: &str, parent: Option<&str>, output: u64, at_ms: i64) -> NewRecord {
    entry(name, parent, EntryBody::Message(assistant("x", output, at_ms).into()), at_ms)
}

fn result(name: &str, parent: &str, tool: &str, at_ms: i64) -> NewRecord {
    let result = FunctionResultMessage {
        function_call_id: "c".to_owned(),
        function_id: tool.to_owned(),
        content: vec![ContentBlock::text("done")],
        details: RawJson::default(),
        is_error: tool == "bash",
        timestamp: at_ms,
        unknown: Default::default(),
    };
    let body = EntryBody::Message(AgentMessage::FunctionResult(result).into());
    entry(name, Some(parent), body, at_ms)
}

/// Session `a` of project /x spends 5 and 7 on days 1 and 2 and calls two tools; `b` of project /y spends 11 on day 2.
async fn two(factory: &dyn Factory) -> std::sync::Arc<dyn Store> {
    let store = factory.fresh().await;
    let project = |name: &str| MetaChange {
        metadata: Some(map(json!({"cwd": name, "tenant": "t1", "agent": "coder"}))),
        ..MetaChange::default()
    };
    create(store.as_ref(), &id("a"), 1).await;
    let records = vec![
        meta(project("/x"), DAY_MS),
        spent("e1", None, 5, DAY_MS + 1_000),
        result("e2", "e1", "bash", DAY_MS + 3_000),
        result("e3", "e2", "read", DAY_MS + 3_500),
        spent("e4", Some("e3"), 7, 2 * DAY_MS),
    ];
    push(store.as_ref(), &id("a"), records).await;
    create(store.as_ref(), &id("b"), 2).await;
    let records = vec![meta(project("/y"), DAY_MS), spent("e1", None, 11, 2 * DAY_MS)];
    push(store.as_ref(), &id("b"), records).await;
    store
}

fn outputs(report: &UsageReport) -> Vec<u64> {
    report.sums.iter().map(|sum| sum.models.totals.output).collect()
}

pub(super) async fn sums_are_kept_apart_as_asked(factory: &dyn Factory) {
    let store = two(factory).await;
    let ask = async |query: &UsageQuery| store.usage(query).await.unwrap();
    let all = ask(&by(&[])).await;
    assert_eq!((outputs(&all), all.sessions, all.more), (vec![23], 2, false));
    let tools = &all.sums.first().unwrap().tools;
    assert_eq!((tools.totals.messages, tools.errors, tools.time_ms), (2, 1, 2_000 + 2_500));
    let days = ask(&by(&[UsageGroup::Day])).await;
    assert_eq!(outputs(&days), [5, 18]);
    assert_eq!(days.sums.first().unwrap().name.day, Some(1));
    let projects = ask(&by(&[UsageGroup::Project, UsageGroup::Tenant, UsageGroup::Agent])).await;
    let mut found: Vec<_> = projects.sums.iter().map(|sum| sum.name.project.clone()).collect();
    found.sort();
    assert_eq!(found, [Some("/x".to_owned()), Some("/y".to_owned())]);
    assert!(projects.sums.iter().all(|sum| sum.name.tenant.as_deref() == Some("t1")));
    assert!(projects.sums.iter().all(|sum| sum.name.agent.as_deref() == Some("coder")));
    let models = ask(&by(&[UsageGroup::Model])).await;
    assert_eq!(outputs(&models), [23]);
    assert_eq!(models.sums.first().unwrap().tools.totals.messages, 0, "tools are left out");
    let tools = ask(&by(&[UsageGroup::Tool])).await;
    let named: Vec<_> = tools.sums.iter().filter_map(|sum| sum.name.tool.as_deref()).collect();
    assert_eq!(named, ["bash", "read"]);
    let sessions = ask(&by(&[UsageGroup::Session])).await;
    assert_eq!(sessions.sums.len(), 2);
    let second = UsageQuery { first_day: Some(2), ..by(&[]) };
    assert_eq!(outputs(&ask(&second).await), [18]);
    let first = UsageQuery { last_day: Some(1), ..by(&[]) };
    assert_eq!(outputs(&ask(&first).await), [5]);
    let scoped = UsageQuery { scope: map(json!({"cwd": "/y"})), ..by(&[]) };
    let scoped = ask(&scoped).await;
    assert_eq!((outputs(&scoped), scoped.sessions), (vec![11], 1));
    let one = UsageQuery { limit: 1, ..by(&[UsageGroup::Day]) };
    let one = ask(&one).await;
    assert_eq!((outputs(&one), one.more), (vec![5], true));
}

pub(super) async fn a_deleted_session_is_no_longer_summed(factory: &dyn Factory) {
    let store = two(factory).await;
    store.delete(&id("a"), 3 * DAY_MS).await.unwrap();
    let left = store.usage(&by(&[])).await.unwrap();
    assert_eq!((outputs(&left), left.sessions), (vec![11], 1));
}
