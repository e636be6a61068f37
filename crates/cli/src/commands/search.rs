use std::num::NonZeroUsize;

use bough_service::api::{IndexStatus, SearchHit, SearchRequest, SearchResponse, SearchSnippet};
use serde_json::json;

use crate::app::App;
use crate::backend::{Backend, CallError};
use crate::command_error::{CommandError, CommandResult, ErrorKind};
use crate::limits::{INDEX_ELSEWHERE_ROUNDS, INDEX_STALLED_ROUNDS};
use crate::output::{Line, Progress, Style};
use crate::search_hit;
use crate::text::{clean_line, count, fit, shell_word, width};

/// Search the messages of all sessions
///
/// Searches every session and branch: messages, thoughts, calls of tools and their results, errors, summaries, labels
/// and titles. Upper and lower case are the same. A hit has all the words; "a phrase" matches words in this order,
/// -word leaves out hits with that word, and word* matches the beginning of a word. An identifier is found whole and by
/// its parts.
///
/// Filters: role:user, tool:bash, model:opus, agent:NAME, session:ID, project:~/x, after:2026-10-01, before:3d, and
/// is:thinking (or text, call, result, error, summary, label, title, about, data, old).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough search flaky test
  bough search '\"connection reset\" tool:bash after:2w'
  bough search 'parseConfig project:~/work/app -role:tool'
  bough search 'is:title release' --json")]
pub(crate) struct Args {
    /// The query; quote it for the shell if it has quotes of its own or a -word
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,

    /// How many hits to show
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "20", value_parser = at_least_one)]
    limit: NonZeroUsize,

    /// Continue after the previous page: the `next_cursor` that --json printed
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    let query = args.query.join(" ");
    let request =
        SearchRequest { query: query.clone(), cursor: args.cursor, ..SearchRequest::default() };
    app.with_backend(async |backend| {
        wait_for_index(app, backend, "Indexing").await?;
        let found = find(backend, &request, args.limit.get()).await.map_err(explained)?;
        if app.output.is_json() {
            return app.output.json(&found);
        }
        if found.hits.is_empty() {
            app.output.note("nothing fits; fewer words or filters find more");
            if let Some(word) = left_out(&query) {
                let hint =
                    format!("`{word}` leaves out what has that word; quote it to look for it");
                app.output.note(Line::of(Style::Dim, hint));
            }
        }
        for hit in &found.hits {
            print_hit(app, hit)?;
        }
        if let Some(first) = found.hits.first() {
            note_how_to_open(app, first);
        }
        if found.next_cursor.is_some() {
            app.output.note(Line::of(Style::Dim, "there are more: -n COUNT"));
        }
        if let Some(status) = found.index.filter(|status| !status.is_complete) {
            app.output.note(Line::of(Style::Warning, behind(status)));
        }
        Ok(())
    })
    .await
}

/// The first word of a query that is left out, which the flags of a pasted command are by mistake.
fn left_out(query: &str) -> Option<&str> {
    let is_left_out = |word: &&str| {
        let rest = word.strip_prefix('-').filter(|rest| !rest.contains(':'));
        rest.is_some_and(|rest| rest.starts_with(char::is_alphanumeric))
    };
    query.split_whitespace().filter(|_| !query.contains('"')).find(is_left_out)
}

fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "give a number of at least 1".to_owned())
}

/// So many hits. A page may have fewer, and a server bounds its pages.
async fn find(
    backend: &Backend,
    request: &SearchRequest,
    limit: usize,
) -> Result<SearchResponse, CallError> {
    let first = SearchRequest { limit: Some(limit), ..request.clone() };
    let mut found = backend.search(&first).await?;
    while found.hits.len() < limit
        && let Some(cursor) = found.next_cursor.take()
    {
        let limit = Some(limit - found.hits.len());
        let next = SearchRequest { limit, cursor: Some(cursor), ..request.clone() };
        let page = backend.search(&next).await?;
        found.hits.extend(page.hits);
        (found.next_cursor, found.index) = (page.next_cursor, page.index);
    }
    Ok(found)
}

/// Adds what this command takes to an error about a query or a cursor.
fn explained(error: CallError) -> CommandError {
    let hint = match error.code.as_str() {
        "session/invalid_request" | "session/too_large" => {
            "`bough help search` shows what a query can have"
        }
        "session/invalid_cursor" => "leave out --cursor to begin again",
        _ => return error.into(),
    };
    let mut failed = CommandError::from(error);
    failed.kind = ErrorKind::Usage;
    failed.hints = vec![hint.to_owned()];
    failed
}

/// Waits until the index has everything, and shows its progress. A server updates its index by itself; the search then
/// reports its progress. An index that another process updates is waited for only shortly by a search, and by a
/// rebuild as long as it makes progress.
pub(crate) async fn wait_for_index(
    app: &App,
    backend: &Backend,
    what: &str,
) -> CommandResult<Option<IndexStatus>> {
    let is_search = what == "Indexing";
    let patience = if is_search { INDEX_ELSEWHERE_ROUNDS } else { INDEX_STALLED_ROUNDS };
    let mut progress: Option<(Progress, u64)> = None;
    let (mut before, mut rounds) = (None, 0);
    loop {
        let status = match backend.search_status().await {
            Ok(status) => status,
            // An older server, or one without an index: search what it can find.
            Err(_) => return Ok(None),
        };
        let is_remote = matches!(backend, Backend::Remote(_));
        if status.is_complete || (is_remote && is_search) || rounds >= patience {
            return Ok(Some(status));
        }
        let left = status.behind_sessions.max(status.behind_changes);
        let (bar, most) = progress.get_or_insert_with(|| (app.output.progress(what), left));
        *most = left.max(*most);
        // One session may have most of the entries, so their number shows the progress too.
        let entries = count(status.indexed_documents, "entry", "entries");
        bar.set(most.saturating_sub(left), *most, &entries);
        let moved = before.replace(status) != Some(status) && !is_search;
        rounds = if moved || !status.is_elsewhere { 0 } else { rounds + 1 };
    }
}

fn behind(status: IndexStatus) -> String {
    format!(
        "the index is still behind: {} changes and {} sessions are not searched yet",
        status.behind_changes, status.behind_sessions
    )
}

fn print_hit(app: &App, hit: &SearchHit) -> CommandResult<()> {
    let columns = app.output.columns();
    let facts = format!("  {} · {}", search_hit::who(hit), search_hit::facts(hit, app.now_ms()));
    let title_columns = columns.saturating_sub(width(&facts)).max(TITLE_COLUMNS_MIN);
    let title = fit(&clean_line(search_hit::title(hit)), title_columns);
    let facts = fit(&facts, columns.saturating_sub(width(&title)));
    app.output.line(Line::of(Style::Strong, title).dim(facts))?;
    print_ids(app, hit)?;
    if let Some(snippet) = &hit.snippet {
        print_snippet(app, snippet)?;
    }
    app.output.line("")
}

/// Columns of a title at the least, however much is said beside it.
const TITLE_COLUMNS_MIN: usize = 8;

/// Prints the ids in one line, or each in its own if the window is too narrow: a broken one cannot be copied.
fn print_ids(app: &App, hit: &SearchHit) -> CommandResult<()> {
    let session = format!("  {}", clean_line(hit.meta.session_id.as_str()));
    let Some(entry) = &hit.entry_id else {
        return app.output.line(Line::of(Style::Dim, session));
    };
    let both = format!("{session} {}", clean_line(entry.as_str()));
    if width(&both) <= app.output.columns() {
        return app.output.line(Line::of(Style::Dim, both));
    }
    app.output.line(Line::of(Style::Dim, session))?;
    app.output.line(Line::of(Style::Dim, format!("  {entry}")))
}

/// Prints a snippet with the matches highlighted.
fn print_snippet(app: &App, snippet: &SearchSnippet) -> CommandResult<()> {
    let mut flow = app.output.flow();
    let mut from = 0;
    let mut piece = |style: Style, from: usize, to: usize| {
        let text: String = snippet.text.chars().skip(from).take(to.saturating_sub(from)).collect();
        // A snippet is one line, whatever the message has.
        app.output.add_styled_to(&mut flow, style, &clean_line(&text))
    };
    for (start, end) in &snippet.highlights {
        piece(Style::Plain, from, *start)?;
        piece(Style::Warning, *start, *end)?;
        from = *end;
    }
    piece(Style::Plain, from, usize::MAX)?;
    app.output.finish(&mut flow)
}

/// Says how to read a hit. A command that does not fit the window is continued in the next line, as shells take it.
fn note_how_to_open(app: &App, hit: &SearchHit) {
    let note = |text: String| app.output.note(Line::of(Style::Dim, text));
    let show = format!("bough show {}", shell_word(hit.meta.session_id.as_str()));
    let leaf = hit.entry_id.as_ref().map(|entry| format!(" --leaf {}", shell_word(entry.as_str())));
    let whole = format!("read the first: {show}{}", leaf.as_deref().unwrap_or_default());
    match leaf {
        Some(leaf) if width(&whole) > app.output.columns() => {
            note("read the first:".to_owned());
            note(format!("  {show} \\"));
            note(format!("   {leaf}"));
        }
        _ => note(whole),
    }
}

/// Build the search index again
///
/// The index is made from the sessions and holds nothing of its own, so this is always safe. Meanwhile searches find
/// what is indexed already, and report how far the index is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough reindex")]
pub(crate) struct ReindexArgs {}

pub(crate) async fn reindex(app: &App, _: ReindexArgs) -> CommandResult<()> {
    app.with_backend(async |backend| {
        backend.reindex().await?;
        let status = wait_for_index(app, backend, "Reindexing").await?;
        let done = status.filter(|status| status.is_complete);
        let status = done.ok_or_else(|| {
            CommandError::failed("another process updates the index and makes no progress")
                .hint("stop that process (perhaps a server), or restart it")
        })?;
        let answer = json!({ "reindexed": true, "index": status });
        app.output.answer(&answer, || app.output.line("the search index was built again"))
    })
    .await
}
