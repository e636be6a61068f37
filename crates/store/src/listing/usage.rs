//! Sums of what sessions used, over what is known of each.

use std::collections::BTreeMap;

use bough_session::{UsageKey, UsageOf, Used, agent_of, metadata_matches, project_of, tenant_of};

use crate::types::{Listed, UsageGroup, UsageName, UsageQuery, UsageReport, UsageSum};

/// Sums over sessions that are all in memory.
pub(crate) fn sums<'a>(
    sessions: impl Iterator<Item = &'a Listed>,
    query: &UsageQuery,
) -> UsageReport {
    let mut sums: BTreeMap<UsageName, (Used, Used)> = BTreeMap::new();
    let mut count = 0;
    for listed in sessions.filter(|listed| matches(query, listed)) {
        count += 1;
        let about = About::of(listed);
        for (key, used) in listed.by_day.iter().filter(|(key, _)| counts(query, key)) {
            let (models, tools) = sums.entry(about.name(key, query)).or_default();
            match key.1 {
                UsageOf::Model => models.add_sum(used),
                UsageOf::Tool => tools.add_sum(used),
            }
        }
    }
    let sums = sums.into_iter().map(|(name, (models, tools))| UsageSum { name, models, tools });
    UsageReport { sessions: count, ..report(sums.collect(), query) }
}

/// The sums in their order, as many as were asked for.
pub(crate) fn report(mut sums: Vec<UsageSum>, query: &UsageQuery) -> UsageReport {
    let cost = |sum: &UsageSum| sum.models.totals.cost_usd;
    sums.sort_by(|a, b| {
        let by_cost = || cost(b).total_cmp(&cost(a));
        a.name.day.cmp(&b.name.day).then_with(by_cost).then_with(|| a.name.cmp(&b.name))
    });
    let more = sums.len() > query.limit;
    sums.truncate(query.limit);
    UsageReport { sums, more, sessions: 0 }
}

fn matches(query: &UsageQuery, listed: &Listed) -> bool {
    let metadata = listed.meta.metadata.as_ref();
    !listed.meta.session_id.is_documents()
        && metadata_matches(&query.metadata, metadata)
        && metadata_matches(&query.scope, metadata)
}

/// Whether a row belongs to what is asked for.
fn counts(query: &UsageQuery, (day, of, _): &UsageKey) -> bool {
    let unwanted = match of {
        UsageOf::Model => UsageGroup::Tool,
        UsageOf::Tool => UsageGroup::Model,
    };
    query.first_day.is_none_or(|first| first <= *day)
        && query.last_day.is_none_or(|last| *day <= last)
        && !query.is_by(unwanted)
}

/// What sums of a session can be kept apart by.
pub(crate) struct About<'a> {
    listed: &'a Listed,
    pub(crate) project: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) tenant: Option<String>,
}

impl<'a> About<'a> {
    pub(crate) fn of(listed: &'a Listed) -> Self {
        let metadata = listed.meta.metadata.as_ref();
        Self {
            listed,
            project: project_of(metadata).map(str::to_owned),
            agent: metadata.and_then(agent_of),
            tenant: tenant_of(metadata).map(str::to_owned),
        }
    }

    fn name(&self, (day, of, name): &UsageKey, query: &UsageQuery) -> UsageName {
        let is = |group| query.is_by(group);
        UsageName {
            day: is(UsageGroup::Day).then_some(*day),
            model: (is(UsageGroup::Model) && *of == UsageOf::Model).then(|| name.clone()),
            tool: (is(UsageGroup::Tool) && *of == UsageOf::Tool).then(|| name.clone()),
            project: self.project.clone().filter(|_| is(UsageGroup::Project)),
            agent: self.agent.clone().filter(|_| is(UsageGroup::Agent)),
            tenant: self.tenant.clone().filter(|_| is(UsageGroup::Tenant)),
            session_id: is(UsageGroup::Session).then(|| self.listed.meta.session_id.clone()),
        }
    }
}
