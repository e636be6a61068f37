use bough_service::api::MessageItem;
use bough_session::SessionStatus;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders};

use super::super::theme::{
    Keys, Theme, dialog, footer, header, input_line, place_cursor, row, text_lines,
};
use super::state::{Mode, PickerState, Preview, Row, Scope, Sort};
use crate::backend::Summary;
use crate::text::{age, clean_line, cost, fit, pad, stamp, width};
use crate::transcript::{BlockKind, shown};

/// From this width on the preview is beside the list; below, under it.
const WIDE: u16 = 110;
/// From this height on, a preview fits under the list.
const TALL: u16 = 18;
/// Rows of a preview under the list, its border included.
const PREVIEW_ROWS: u16 = 7;
/// From this width of the list on, the column of models is wider.
const WIDE_LIST: usize = 90;
/// Below this width of the list, titles use the columns of models and costs.
const NARROW_LIST: usize = 72;
/// Below this, only rows are shown.
const TINY_ROWS: u16 = 5;
const PROMPT: &str = "> ";

pub(crate) const KEYS: &Keys = &[
    ("Enter", "open"),
    ("Tab", "folder/all"),
    ("^F", "in messages"),
    ("^S", "sort"),
    ("^R", "rename"),
    ("^D", "delete"),
    ("^A", "archive"),
    ("^V", "preview"),
    ("Esc", "quit"),
    ("↑↓ PgUp PgDn", "move"),
    ("^N", "only named ones"),
    ("^P", "paths"),
    ("^T", "archived ones too"),
    ("^Z", "restore the last deleted"),
];

/// The areas of the screen.
struct Areas {
    header: Rect,
    search: Rect,
    list: Rect,
    preview: Option<Rect>,
    footer: Rect,
}

fn areas(area: Rect, with_preview: bool) -> Areas {
    if area.height < TINY_ROWS {
        let none = Rect { height: 0, ..area };
        return Areas { header: none, search: none, list: area, preview: None, footer: none };
    }
    let mut list = Rect { y: area.y + 3, height: area.height - 4, ..area };
    let preview = match (with_preview, area.width >= WIDE, area.height >= TALL) {
        (true, true, _) => {
            let columns = area.width * 2 / 5;
            list.width -= columns;
            Some(Rect { x: list.right(), width: columns, ..list })
        }
        (true, false, true) => {
            list.height -= PREVIEW_ROWS;
            Some(Rect { y: list.bottom(), height: PREVIEW_ROWS, ..list })
        }
        _ => None,
    };
    let (header, search) = (row(area, 0), row(area, 1));
    Areas { header, search, list, preview, footer: row(area, area.height - 1) }
}

fn area_of(state: &PickerState) -> Rect {
    Rect::new(0, 0, state.size.columns, state.size.rows)
}

/// How many rows of the list are visible.
pub(super) fn list_rows(state: &PickerState) -> usize {
    usize::from(areas(area_of(state), state.show_preview).list.height)
}

/// Draws the picker.
pub(crate) fn view(state: &PickerState, frame: &mut Frame, theme: Theme) {
    let area = frame.area();
    let areas = areas(area, state.show_preview);
    header(frame, areas.header, theme, &title(state), &facts(state));
    input_line(frame, areas.search, theme, (PROMPT, "type to search"), &state.search);
    if state.mode == Mode::Browse {
        place_cursor(frame, areas.search, PROMPT, &state.search);
    }
    list(state, frame, areas.list, theme);
    if let Some(area) = areas.preview {
        preview(state, frame, area, theme);
    }
    footer(frame, areas.footer, theme, state.status.as_ref(), KEYS);
    match &state.mode {
        Mode::Browse => {}
        Mode::ConfirmDelete(session) => confirm(state.summary(session), frame, area, theme),
        Mode::Rename(_, input) => {
            let text = fit(&clean_line(input.text()), usize::from(area.width).saturating_sub(8));
            let lines = [
                Line::from(format!("{text}▏")),
                Line::styled("Enter renames · Esc cancels", theme.dim()),
            ];
            dialog(frame, area, theme, "Rename session", &lines);
        }
    }
}

fn title(state: &PickerState) -> String {
    let scope = match state.scope {
        Scope::Project => "Current Folder",
        Scope::All => "All",
    };
    format!("Resume Session ({scope})")
}

fn facts(state: &PickerState) -> String {
    let (read, more) = state.read_so_far();
    let more = if more { "+" } else { "" };
    let found = if state.search.is_empty() && !state.named_only {
        format!("{read}{more}")
    } else {
        format!("{} of {read}{more}", state.rows.len())
    };
    let sort = match state.sort {
        Sort::Recent => "recent",
        Sort::Threaded => "threaded",
        Sort::Best => "best match",
    };
    let named = if state.named_only { " · named" } else { "" };
    let archived = if state.show_archived { " · archived too" } else { "" };
    format!("{found} · {sort}{named}{archived}")
}

fn list(state: &PickerState, frame: &mut Frame, area: Rect, theme: Theme) {
    if state.rows.is_empty() {
        let text = empty_words(state);
        frame.render_widget(
            Line::styled(fit(&text, usize::from(area.width)), theme.dim()),
            row(area, 0),
        );
        return;
    }
    let seen = usize::from(area.height);
    for (at, number) in state.window.range(state.rows.len(), seen).enumerate() {
        let Some(found) = state.rows.get(number) else { continue };
        let Some(summary) = state.session(*found) else { continue };
        let line = row_line(state, *found, summary, usize::from(area.width), theme);
        let line =
            if number == state.window.chosen { line.patch_style(theme.chosen()) } else { line };
        frame.render_widget(line, row(area, u16::try_from(at).unwrap_or(u16::MAX)));
    }
}

fn empty_words(state: &PickerState) -> String {
    let words = match () {
        () if state.is_loading => "Reading…",
        () if !state.search.is_empty() => "Nothing fits. Enter searches messages, Esc clears this.",
        () if state.named_only => "No session has a name. Ctrl+N shows all.",
        () if state.scope == Scope::Project => "No sessions of this folder. Tab shows all.",
        () => "No sessions yet. `bough record` or `bough migrate` adds one.",
    };
    words.to_owned()
}

/// One session: its caption on the left; count, age, model and cost in columns on the right.
fn row_line<'a>(
    state: &PickerState,
    found: Row,
    summary: &Summary,
    columns: usize,
    theme: Theme,
) -> Line<'a> {
    let facts = facts_columns(state, summary, columns);
    let columns_left = columns.saturating_sub(width(&facts) + 1);
    let indent = thread_mark(found.depth);
    let mark = match summary.meta.status {
        SessionStatus::Working => "* ",
        SessionStatus::Error => "! ",
        SessionStatus::Idle | SessionStatus::Done => "",
    };
    let archived = if summary.details.archived { "[archived] " } else { "" };
    let archived = if summary.file.is_some() { "[pi file] " } else { archived };
    let caption = clean_line(summary.caption()).into_owned();
    let mut text = format!("{indent}{mark}{archived}{caption}");
    if let (true, Some(path)) = (state.show_path, summary.cwd()) {
        text = format!("{text}  {}", clean_line(path));
    }
    let style = if summary.is_named() { theme.strong() } else { ratatui::style::Style::new() };
    Line::from(vec![
        Span::styled(pad(&text, columns_left), style),
        Span::raw(" "),
        Span::styled(facts, theme.dim()),
    ])
}

fn thread_mark(depth: usize) -> String {
    /// Deeper threads are not indented further.
    const DEPTH_SHOWN: usize = 8;
    if depth == 0 {
        return String::new();
    }
    format!("{}└ ", "  ".repeat(depth.min(DEPTH_SHOWN) - 1))
}

fn facts_columns(state: &PickerState, summary: &Summary, columns: usize) -> String {
    // A file is not read to its end for a list, so its count is not known.
    let count = match summary.file {
        Some(_) => "-".to_owned(),
        None => summary.meta.message_count.to_string(),
    };
    let when = age(state.now_ms, summary.meta.updated_at);
    let short = format!("{count:>5} {when:>4}");
    if columns < NARROW_LIST {
        return if columns < 24 { String::new() } else { short };
    }
    let model_columns = if columns < WIDE_LIST { 16 } else { 26 };
    let model = pad(&clean_line(summary.model().unwrap_or("-")), model_columns);
    format!("{short}  {model} {:>8}", cost(summary.cost_usd()))
}

fn preview(state: &PickerState, frame: &mut Frame, area: Rect, theme: Theme) {
    let Some(summary) = state.chosen() else { return };
    let beside = area.width < frame.area().width;
    let borders = if beside { Borders::LEFT } else { Borders::TOP };
    let block = Block::new().borders(borders).border_style(theme.dim());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let facts = Line::styled(fit(&facts_line(summary), usize::from(inner.width)), theme.dim());
    frame.render_widget(facts, row(inner, 0));
    let lines = match state.preview() {
        None | Some(Preview::Loading) => vec![Line::styled("…", theme.dim())],
        Some(Preview::Failed(text)) => text_lines(text, inner, theme.problem()),
        Some(Preview::Shown(items)) => message_lines(items, inner, theme),
    };
    // The newest is at the end; lines that do not fit are left out at the front.
    let skip = (lines.len() + 1).saturating_sub(usize::from(inner.height));
    for (at, line) in lines.into_iter().skip(skip).enumerate() {
        frame.render_widget(line, row(inner, u16::try_from(at + 1).unwrap_or(u16::MAX)));
    }
}

/// Messages, which arrive newest first, in the order of the conversation.
fn message_lines<'a>(items: &[MessageItem], area: Rect, theme: Theme) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for item in items.iter().rev() {
        let shown = shown(item);
        let one_line = |text: &str| fit(&clean_line(text), usize::from(area.width));
        let heading = one_line(&shown.heading);
        lines.push(Line::styled(heading, theme.speaker(shown.speaker)));
        for block in &shown.blocks {
            match block.kind {
                BlockKind::Text if !block.body.is_empty() => {
                    lines.extend(text_lines(&block.body, area, ratatui::style::Style::new()));
                }
                BlockKind::Call => {
                    let call = one_line(&format!("→ {}", block.title));
                    lines.push(Line::styled(call, theme.dim()));
                }
                _ => {}
            }
        }
    }
    lines
}

fn facts_line(summary: &Summary) -> String {
    let folder = summary.cwd().map(|cwd| format!(" · {}", clean_line(cwd)));
    let id = clean_line(summary.id().as_str()).into_owned();
    format!("{} · {id}{}", stamp(summary.meta.updated_at), folder.unwrap_or_default())
}

fn confirm(session: Option<&Summary>, frame: &mut Frame, area: Rect, theme: Theme) {
    let Some(session) = session else { return };
    let columns_left = usize::from(area.width).saturating_sub(8);
    let messages =
        format!("{} messages; `bough restore` brings it back", session.meta.message_count);
    let lines = [
        Line::styled(fit(&clean_line(session.caption()), columns_left), theme.strong()),
        Line::from(messages),
        Line::styled("Enter or y deletes · any other key cancels", theme.dim()),
    ];
    dialog(frame, area, theme, "Delete session?", &lines);
}
