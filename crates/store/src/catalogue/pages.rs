use std::cell::RefCell;

use bough_session::SessionId;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::facets::{self, Facet};
use super::rows::{SHOWN, limit_of, read_shown};
use super::{feed, sqlite_error};
use crate::StoreError;
use crate::listing::{ListCursor, Phase, compose, key_of};
use crate::types::{ListOrder, ListPage, ListQuery, Listed};

/// How many rows of a facet are counted to find the rarest; beyond this all are taken for common.
const RARITY_ROWS_MAX: usize = 200;

/// One look at the table.
struct Look<'a> {
    connection: &'a Connection,
    /// Sessions whose rows could not be read, and were made from other columns.
    unreadable: RefCell<Vec<SessionId>>,
}

/// A page of a list, and the sessions on it whose rows could not be read whole.
pub(super) fn list(
    connection: &Connection,
    query: &ListQuery,
) -> Result<(ListPage, Vec<SessionId>), StoreError> {
    let cursor = ListCursor::of(query)?;
    // One transaction, so that both phases and the change number are of one moment.
    let transaction = connection.unchecked_transaction().map_err(sqlite_error)?;
    let now = feed::newest(&transaction).map_err(sqlite_error)?;
    let first_page =
        cursor.as_ref().map_or_else(|| now.clone(), |cursor| cursor.first_page(now.epoch));
    let limit = query.limit.max(1);
    let plan = Plan::of(&transaction, query).map_err(sqlite_error)?;
    let look = Look { connection: &transaction, unreadable: RefCell::default() };
    let in_order = match &cursor {
        Some(cursor) if cursor.phase == Phase::Changed => Vec::new(),
        _ => look.ordered(query, &plan, cursor.as_ref(), limit + 1).map_err(sqlite_error)?,
    };
    let changed = match &cursor {
        Some(cursor) if query.order == ListOrder::UpdatedDesc && in_order.len() <= limit => {
            // Some of them may be on this page already.
            let wanted = limit + 1 + in_order.len();
            look.changed(query, &plan, cursor, first_page.number, wanted).map_err(sqlite_error)?
        }
        _ => Vec::new(),
    };
    Ok((compose(query, &first_page, in_order, changed), look.unreadable.take()))
}

/// From which index a query is answered.
struct Plan {
    /// The rarest facet, whose index leads; `None` when the query has none.
    rarest: Option<Facet>,
    /// The others, which are looked up for each row of the first.
    others: Vec<Facet>,
    /// The ids that the query asks for; the index of ids leads then, because a prefix is rarer than any facet.
    ids: Option<IdRange>,
}

/// The ids that begin with a prefix.
struct IdRange {
    first: String,
    /// The least id that is greater than all of them; `None` when there is none.
    end: Option<String>,
}

impl IdRange {
    fn of(prefix: &str) -> Self {
        let mut end: Vec<char> = prefix.chars().collect();
        // Letters are ordered as their UTF-8 is, by which SQLite compares.
        while let Some(last) = end.pop() {
            if let Some(next) = (last..=char::MAX).nth(1) {
                end.push(next);
                return Self { first: prefix.to_owned(), end: Some(end.into_iter().collect()) };
            }
        }
        Self { first: prefix.to_owned(), end: None }
    }
}

impl Plan {
    fn of(connection: &Connection, query: &ListQuery) -> rusqlite::Result<Self> {
        let facets = facets::of_query(query);
        if let Some(prefix) = query.id_prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
            return Ok(Self { rarest: None, others: facets, ids: Some(IdRange::of(prefix)) });
        }
        let several = facets.len() > 1;
        let mut ranked = Vec::with_capacity(facets.len());
        for facet in facets {
            let rows = if several { rows_of(connection, &facet)? } else { 0 };
            ranked.push((rows, facet));
        }
        ranked.sort_unstable();
        let mut facets = ranked.into_iter().map(|(_, facet)| facet);
        Ok(Self { rarest: facets.next(), others: facets.collect(), ids: None })
    }

    /// The table whose index gives the order; none does where ids lead, which the plus sign says.
    const fn first(&self) -> &'static str {
        match (self.rarest, &self.ids) {
            (Some(_), _) => "f",
            (None, None) => "s",
            (None, Some(_)) => "+s",
        }
    }

    const fn source(&self) -> &'static str {
        if self.rarest.is_some() {
            "facets f JOIN sessions s ON s.row = f.row"
        } else {
            "sessions s"
        }
    }

    fn filter(&self, sql: &mut Sql, query: &ListQuery) {
        if let Some(facet) = self.rarest {
            sql.and("f.facet = ?", [Value::from(facet.to_vec())]);
        }
        self.filter_ids(sql, "s");
        self.filter_others(sql, &self.others, query);
    }

    /// The filter without a leading facet: every facet is looked up for each row.
    fn filter_rows(&self, sql: &mut Sql, query: &ListQuery) {
        self.filter_ids(sql, "+s");
        let all: Vec<Facet> = self.rarest.iter().chain(&self.others).copied().collect();
        self.filter_others(sql, &all, query);
    }

    fn filter_ids(&self, sql: &mut Sql, table: &str) {
        let Some(IdRange { first, end }) = &self.ids else { return };
        sql.and(format!("{table}.session_id >= ?"), [Value::from(first.clone())]);
        if let Some(end) = end {
            sql.and(format!("{table}.session_id < ?"), [Value::from(end.clone())]);
        }
    }

    fn filter_others(&self, sql: &mut Sql, facets: &[Facet], query: &ListQuery) {
        for facet in facets {
            sql.and(
                "EXISTS (SELECT 1 FROM facets g WHERE g.row = s.row AND g.facet = ?)",
                [Value::from(facet.to_vec())],
            );
        }
        if let Some(text) = &query.text {
            sql.and("instr(s.search, ?) > 0", [Value::from(text.to_lowercase())]);
        }
    }
}

impl Look<'_> {
    /// What follows the cursor in the list's own order.
    fn ordered(
        &self,
        query: &ListQuery,
        plan: &Plan,
        cursor: Option<&ListCursor>,
        limit: usize,
    ) -> rusqlite::Result<Vec<Listed>> {
        let halves = query.archived.map_or(vec![false, true], |archived| vec![archived]);
        let mut found = Vec::new();
        for archived in halves {
            found.extend(self.ordered_half(query, plan, cursor, archived, limit)?);
        }
        // Both halves are in order, and both were asked for enough.
        found.sort_by(|a, b| {
            let ordering = key_of(query.order, a).cmp(&key_of(query.order, b));
            if query.order == ListOrder::CreatedAsc { ordering } else { ordering.reverse() }
        });
        found.truncate(limit);
        Ok(found)
    }

    fn ordered_half(
        &self,
        query: &ListQuery,
        plan: &Plan,
        cursor: Option<&ListCursor>,
        archived: bool,
        limit: usize,
    ) -> rusqlite::Result<Vec<Listed>> {
        let first = plan.first();
        let time = match query.order {
            ListOrder::CreatedAsc | ListOrder::CreatedDesc => "created_at",
            ListOrder::UpdatedDesc => "updated_at",
        };
        let (after, direction) = match query.order {
            ListOrder::CreatedAsc => (">", "ASC"),
            ListOrder::CreatedDesc | ListOrder::UpdatedDesc => ("<", "DESC"),
        };
        let mut sql = Sql::new(format!("SELECT {SHOWN} FROM {}", plan.source()));
        plan.filter(&mut sql, query);
        sql.and(format!("{first}.archived = ?"), [Value::from(archived)]);
        if let Some(cursor) = cursor {
            sql.and(
                format!("({first}.{time}, {first}.session_id) {after} (?, ?)"),
                [Value::from(cursor.key), Value::from(cursor.id.to_string())],
            );
        }
        sql.tail(
            &format!("ORDER BY {first}.{time} {direction}, {first}.session_id {direction} LIMIT ?"),
            Value::from(limit_of(limit)),
        );
        self.read(sql)
    }

    /// What changed since the first page, by id.
    fn changed(
        &self,
        query: &ListQuery,
        plan: &Plan,
        cursor: &ListCursor,
        since: u64,
        limit: usize,
    ) -> rusqlite::Result<Vec<Listed>> {
        let mut sql = Sql::new(format!("SELECT {SHOWN} FROM sessions s"));
        let since = i64::try_from(since).unwrap_or(i64::MAX);
        sql.and("s.change > ?", [Value::from(since)]);
        plan.filter_rows(&mut sql, query);
        if let Some(archived) = query.archived {
            sql.and("+s.archived = ?", [Value::from(archived)]);
        }
        if cursor.phase == Phase::Changed {
            sql.and("+s.session_id > ?", [Value::from(cursor.id.to_string())]);
        }
        // The plus signs keep SQLite on the index of changes, which is short, and off those of all rows.
        sql.tail("ORDER BY +s.session_id LIMIT ?", Value::from(limit_of(limit)));
        self.read(sql)
    }

    fn read(&self, sql: Sql) -> rusqlite::Result<Vec<Listed>> {
        let mut statement = self.connection.prepare_cached(&sql.text)?;
        let mut rows = statement.query(params_from_iter(sql.values))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let (listed, whole) = read_shown(row)?;
            if !whole {
                self.unreadable.borrow_mut().push(listed.meta.session_id.clone());
            }
            found.push(listed);
        }
        Ok(found)
    }
}

fn rows_of(connection: &Connection, facet: &Facet) -> rusqlite::Result<usize> {
    connection
        .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM facets WHERE facet = ? LIMIT ?)")?
        .query_row(rusqlite::params![facet, limit_of(RARITY_ROWS_MAX)], |row| row.get(0))
}

/// A statement being put together: conditions, each with its values.
struct Sql {
    text: String,
    values: Vec<Value>,
}

impl Sql {
    const fn new(text: String) -> Self {
        Self { text, values: Vec::new() }
    }

    fn and<const N: usize>(&mut self, condition: impl AsRef<str>, values: [Value; N]) {
        self.text.push_str(if self.values.is_empty() { " WHERE " } else { " AND " });
        self.text.push_str(condition.as_ref());
        self.values.extend(values);
    }

    fn tail(&mut self, text: &str, value: Value) {
        self.text.push(' ');
        self.text.push_str(text);
        self.values.push(value);
    }
}
