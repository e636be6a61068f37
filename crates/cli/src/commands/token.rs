use bough_platform::{Disk, OsDisk};
use bough_server::config::Span;
use bough_server::{NewToken, TokenError, TokenFile, TokenRecord};
use bough_service::Right;
use bough_session::JsonMap;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;

use crate::app::App;
use crate::command_error::{CommandError, CommandResult, ErrorKind};
use crate::commands::ls::parse_pair;
use crate::output::{Cell, Line, Style, Table};
use crate::text::{stamp, width};

/// Make, list, revoke and remove tokens for the server
///
/// Without tokens the server accepts every caller on this machine. Once there is a token, every caller needs one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough token create --name laptop --rights read,write
  bough token create --scope owner=u_1 --rights read --expires 30d
  bough token list
  bough token revoke 4f2a91c07b33
  bough token rm 4f2a91c07b33
  bough token allow-tokenless")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make a token; it is shown once
    Create(Create),
    /// List tokens
    List,
    /// Revoke a token; it stays in the list for 30 days
    Revoke {
        /// The token's id
        id: String,
    },
    /// Remove tokens; they are invalid at once
    Rm {
        /// The tokens' ids
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Remove all tokens and accept every caller on this machine again
    AllowTokenless,
}

#[derive(Debug, clap::Args)]
struct Create {
    /// What it is for
    #[arg(long, default_value = "")]
    name: String,

    /// What its bearer may do: read, write, admin, bridge, metrics
    #[arg(long, value_delimiter = ',', default_value = "read,write", value_name = "RIGHTS")]
    #[arg(value_parser = right())]
    rights: Vec<Right>,

    /// Only sessions with this metadata; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    scope: Vec<String>,

    /// Only this function; may be repeated
    #[arg(long = "function", value_name = "ID")]
    functions: Vec<String>,

    /// When it ends, such as 30d or 12h [default: never]
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
}

fn right() -> impl TypedValueParser<Value = Right> {
    let named = |name: String| Right::ALL.into_iter().find(|right| right.name() == name);
    let names = PossibleValuesParser::new(Right::ALL.map(Right::name));
    names.try_map(move |name| named(name).ok_or("there is no such right"))
}

pub(crate) fn run(app: &App, args: Args) -> CommandResult<()> {
    let disk = OsDisk::create(app.globals.data_dir_only("token")?)?;
    let file = TokenFile::new(&disk as &dyn Disk);
    match args.action {
        Action::Create(create) => make(app, &file, create),
        Action::List => list(app, &file),
        Action::Revoke { id } => {
            let record = file.revoke(&id, app.now_ms()).map_err(failed)?;
            let text = format!("token {} is revoked", record.id);
            app.output.answer(&shown(&record), || app.output.line(text))
        }
        Action::Rm { ids } => remove(app, &file, &ids),
        Action::AllowTokenless => {
            let removed = file.allow_tokenless().map_err(failed)?;
            let text = "every caller on this machine is accepted without a token";
            app.output.answer(&json!({ "removed": removed }), || app.output.line(text))
        }
    }
}

fn remove(app: &App, file: &TokenFile<'_>, ids: &[String]) -> CommandResult<()> {
    let mut removed = Vec::new();
    for id in ids {
        let record = file.remove(id, app.now_ms()).map_err(failed)?;
        if !app.output.is_json() {
            app.output.line(format!("token {} is removed", record.id))?;
        }
        removed.push(shown(&record));
    }
    if app.output.is_json() {
        return app.output.json(&json!({ "removed": removed }));
    }
    if file.list().map_err(failed)?.is_empty() {
        app.output.note("that was the last one; callers need a token all the same");
        app.output.note(GO_BACK);
    }
    Ok(())
}

/// How to go back from tokens.
const GO_BACK: &str = "`bough token allow-tokenless` removes all tokens and accepts every caller on this machine again";

fn make(app: &App, file: &TokenFile<'_>, create: Create) -> CommandResult<()> {
    let mut scope = JsonMap::new();
    for pair in &create.scope {
        let (key, value) = parse_pair(pair)?;
        scope.insert(key, value);
    }
    let now = app.now_ms();
    let new = NewToken {
        name: create.name,
        scope,
        rights: create.rights,
        functions: Some(create.functions).filter(|functions| !functions.is_empty()),
        expires_at: create.expires.as_deref().map(|text| ends_at(text, now)).transpose()?.flatten(),
    };
    let is_first = !file.load().map_err(failed)?.is_some_and(|tokens| tokens.are_in_use());
    let (text, record) = file.create(new, app.entropy.as_ref(), now).map_err(failed)?;
    if app.output.is_json() {
        let answer = json!({
            "token": text.reveal(), "record": shown(&record), "ends_tokenless_access": is_first,
        });
        return app.output.json(&answer);
    }
    app.output.line(text.reveal())?;
    app.output.note(Line::of(Style::Dim, "keep it safe: it is not shown again"));
    if is_first {
        app.output.note("from now on every caller of the server needs a token");
        app.output.note(GO_BACK);
    }
    Ok(())
}

/// The expiry of a token, from a length of time such as `30d`; `None` is never.
fn ends_at(text: &str, now_ms: i64) -> CommandResult<Option<i64>> {
    let span: Span = text.parse().map_err(|error: bough_server::config::SpanError| {
        CommandError::usage(error.to_string()).hint("write a length of time such as 30d or 12h")
    })?;
    Ok(span.end_after(now_ms))
}

fn list(app: &App, file: &TokenFile<'_>) -> CommandResult<()> {
    let tokens = file.list().map_err(failed)?;
    if app.output.is_json() {
        let tokens: Vec<_> = tokens.iter().map(shown).collect();
        return app.output.json(&json!({ "tokens": tokens }));
    }
    if tokens.is_empty() {
        let is_in_use = file.load().map_err(failed)?.is_some_and(|tokens| tokens.are_in_use());
        app.output.note(if is_in_use {
            "no tokens, and callers need one; make one with `bough token create`"
        } else {
            "no tokens; the server accepts every caller on this machine"
        });
        return Ok(());
    }
    let is_any_limited = tokens.iter().any(|token| token.functions.is_some());
    let mut headings = vec!["ID", "NAME", "RIGHTS", "SCOPE", "STATE"];
    if is_any_limited {
        headings.insert(CALLS_AT, "CALLS");
    }
    let mut table = Table::new(&headings, Some(1)).with_optional(&[3, 2]);
    for token in &tokens {
        let rights: Vec<&str> = token.rights.iter().map(|right| right.name()).collect();
        let scope = serde_json::to_string(&token.scope)?;
        let mut cells = vec![
            Cell::of(Style::Strong, &token.id),
            Cell::new(&token.name),
            Cell::new(rights.join(",")),
            Cell::new(if token.scope.is_empty() { "all" } else { &scope }),
            Cell::new(state(token, app.now_ms())),
        ];
        if is_any_limited {
            cells.insert(CALLS_AT, Cell::new(calls(token, app.output.columns())));
        }
        table.row(cells);
    }
    app.output.table(&table)
}

/// The column of the functions that a token may call. It is left out if there is no limited token, and never for want of space.
const CALLS_AT: usize = 4;

/// The functions that a token may call, by their names where a sixth of the window has room for them.
fn calls(token: &TokenRecord, columns: usize) -> String {
    let Some(functions) = &token.functions else {
        return "all".to_owned();
    };
    let names = functions.join(",");
    if width(&names) <= columns / 6 { names } else { "some".to_owned() }
}

fn state(token: &TokenRecord, now_ms: i64) -> String {
    match (token.revoked_at, token.expires_at) {
        (Some(at), _) => format!("revoked {}", stamp(at)),
        (None, Some(end)) if end <= now_ms => format!("ended {}", stamp(end)),
        (None, Some(end)) => format!("until {}", stamp(end)),
        (None, None) => "valid".to_owned(),
    }
}

/// A token without its secret parts.
fn shown(record: &TokenRecord) -> serde_json::Value {
    json!({
        "id": record.id, "name": record.name, "scope": record.scope, "rights": record.rights,
        "functions": record.functions, "created_at": record.created_at,
        "expires_at": record.expires_at, "revoked_at": record.revoked_at,
    })
}

fn failed(error: TokenError) -> CommandError {
    let kind = match &error {
        TokenError::Unknown { .. } => ErrorKind::NotFound,
        TokenError::Busy { .. } => ErrorKind::Conflict,
        TokenError::Damaged { .. } => ErrorKind::Damaged,
        TokenError::NoRights | TokenError::TooLarge | TokenError::NoSuchFunction { .. } => {
            ErrorKind::Usage
        }
        TokenError::Io(_) | TokenError::TooMany => ErrorKind::Failed,
    };
    let is_unknown = kind == ErrorKind::NotFound;
    let hint = is_unknown.then_some("`bough token list` shows their ids");
    CommandError::new(kind, error).maybe_hint(hint)
}
