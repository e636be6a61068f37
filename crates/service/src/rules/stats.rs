//! Sums over all sessions.

use bough_session::UsageTotals;
use bough_store::{UsageGroup, UsageQuery, UsageSum};
use jiff::Span;
use jiff::civil::Date;

use crate::api::{StatsRequest, StatsResponse, StatsRow};
use crate::error::ServiceError;
use crate::limits::{STATS_ROWS, STATS_ROWS_MAX};
use crate::scope::Scope;
use crate::service::Service;

/// Milliseconds of a day of UTC.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

pub(crate) async fn stats(
    service: &Service,
    scope: &Scope,
    request: StatsRequest,
) -> Result<StatsResponse, ServiceError> {
    let mut by = request.by.unwrap_or_default();
    let mut seen = std::collections::HashSet::new();
    by.retain(|group| seen.insert(*group));
    if by.contains(&UsageGroup::Model) && by.contains(&UsageGroup::Tool) {
        let reason =
            "`by` can name `model` or `tool`, not both: what a tool did is of no one model";
        return Err(ServiceError::invalid(reason));
    }
    let now_ms = service.now_ms();
    let day =
        |name: &str, text: Option<&str>| text.map(|text| day_of(name, text, now_ms)).transpose();
    let query = UsageQuery {
        by,
        first_day: day("from", request.from.as_deref())?,
        last_day: day("to", request.to.as_deref())?,
        metadata: request.metadata.unwrap_or_default(),
        scope: scope.metadata().clone(),
        limit: request.limit.unwrap_or(STATS_ROWS).clamp(1, STATS_ROWS_MAX),
    };
    let report = service.runtime().store.usage(&query).await?;
    Ok(StatsResponse {
        rows: report.sums.into_iter().map(row).collect(),
        more: report.more,
        sessions: report.sessions,
    })
}

/// The day that a text names, counted from the epoch.
fn day_of(name: &str, text: &str, now_ms: i64) -> Result<i64, ServiceError> {
    let begin = bough_search::begin_of_date(text, now_ms);
    begin.map(|begin| begin.div_euclid(DAY_MS)).ok_or_else(|| {
        ServiceError::invalid(format!(
            "`{name}` must be a day such as 2026-11-01, today, yesterday or 7d"
        ))
    })
}

fn row(sum: UsageSum) -> StatsRow {
    let UsageSum { name, models, tools } = sum;
    let mut usage: UsageTotals = models.totals;
    usage.add_sum(&UsageTotals { messages: 0, ..tools.totals });
    StatsRow {
        day: name.day.and_then(date_of),
        model: name.model,
        tool: name.tool,
        project: name.project,
        agent: name.agent,
        tenant: name.tenant,
        session_id: name.session_id,
        usage,
        model_time_ms: models.time_ms,
        tool_calls: tools.totals.messages,
        tool_errors: tools.errors,
        tool_time_ms: tools.time_ms,
    }
}

/// A day as it is written: `2026-11-16`.
fn date_of(day: i64) -> Option<String> {
    let epoch = Date::constant(1970, 1, 1);
    let span = Span::new().try_days(day).ok()?;
    Some(epoch.checked_add(span).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_written_and_read() {
        assert_eq!(date_of(0).as_deref(), Some("1970-01-01"));
        assert_eq!(date_of(-1).as_deref(), Some("1969-12-31"));
        let day = day_of("from", "2026-11-16", 0).unwrap();
        assert_eq!(date_of(day).as_deref(), Some("2026-11-16"));
        assert_eq!(date_of(i64::MAX), None);
        assert!(day_of("from", "soon", 0).is_err());
    }
}
