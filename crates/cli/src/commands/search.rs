use bough_service::api::{IndexStatus, SearchHit, SearchRequest, SearchSnippet};
use serde_json::json;

use crate::app::App;
use crate::backend::{Backend, CallError};
use crate::command_error::{CommandError, CommandResult, ErrorKind};
use crate::limits::{INDEX_ELSEWHERE_ROUNDS, INDEX_STALLED_ROUNDS};
use crate::output::{Line, Progress, Style};
use crate::text::{age, clean_line, fit};

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
    /// The query; quote it for the shell if it has quotes of its own
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,

    /// How many hits to show
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,

    /// Continue after the previous page: the `next_cursor` that --json printed
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    let query = with_home(&args.query.join(" "));
    let request = SearchRequest {
        query,
        limit: Some(args.limit),
        cursor: args.cursor,
        ..SearchRequest::default()
    };
    app.with_backend(async |backend| {
        wait_for_index(app, backend, "Indexing").await?;
        let found = backend.search(&request).await.map_err(explained)?;
        if app.output.is_json() {
            return app.output.json(&found);
        }
        if found.hits.is_empty() {
            app.output.note("nothing fits; fewer words or filters find more");
        }
        for hit in &found.hits {
            print_hit(app, hit)?;
        }
        if let Some(hint) = found.hits.first().map(open_hint) {
            app.output.note(Line::of(Style::Dim, hint));
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

/// Adds the help of this command to an error about a query.
fn explained(error: CallError) -> CommandError {
    let is_query = error.code == "session/invalid_request";
    let mut failed = CommandError::from(error);
    if is_query {
        failed.kind = ErrorKind::Usage;
        failed.hints = vec!["`bough help search` shows what a query can have".to_owned()];
    }
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
        bar.set(most.saturating_sub(left), *most, "");
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

/// Expands `~` in a filter to the caller's home directory, which a server does not know.
fn with_home(query: &str) -> String {
    match std::env::var("HOME") {
        Ok(home) if !home.is_empty() => {
            query.replace("project:~", &format!("project:{}", home.trim_end_matches('/')))
        }
        _ => query.to_owned(),
    }
}

fn print_hit(app: &App, hit: &SearchHit) -> CommandResult<()> {
    let title = match hit.meta.title.is_empty() {
        true => hit.preview.as_deref().unwrap_or("(no title)"),
        false => hit.meta.title.as_str(),
    };
    let who = match (&hit.snippet, hit.role) {
        (_, Some(role)) => role.as_str(),
        (Some(snippet), None) => snippet.kind.as_str(),
        (None, None) => "session",
    };
    let when = age(app.now_ms(), hit.timestamp.unwrap_or(hit.meta.updated_at));
    let mut line = Line::of(Style::Strong, fit(&clean_line(title), TITLE_COLUMNS))
        .dim(format!("  {who} · {when}"));
    if hit.on_active_path == Some(false) {
        line = line.dim(" · another branch");
    }
    if hit.revision.is_some() {
        line = line.dim(" · an old revision");
    }
    app.output.line(line)?;
    let place = match &hit.entry_id {
        Some(entry) => format!("  {} {entry}", hit.meta.session_id),
        None => format!("  {}", hit.meta.session_id),
    };
    app.output.line(Line::of(Style::Dim, place))?;
    if let Some(snippet) = &hit.snippet {
        print_snippet(app, snippet)?;
    }
    app.output.line("")
}

/// Columns of a title.
const TITLE_COLUMNS: usize = 60;

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

fn open_hint(first: &SearchHit) -> String {
    match &first.entry_id {
        Some(entry) => {
            format!("read the first: bough show {} --leaf {entry}", first.meta.session_id)
        }
        None => format!("read the first: bough show {}", first.meta.session_id),
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
        if app.output.is_json() {
            return app.output.json(&json!({ "reindexed": true, "index": status }));
        }
        app.output.line("the search index was built again")
    })
    .await
}
