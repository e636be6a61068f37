use bough_session::Role;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::theme::{Keys, Theme, dialog, footer, header, row};
use super::layout::Row;
use super::state::{Mode, SUMMARY_OPTIONS, TreeState};
use crate::backend::Outline;
use crate::text::{clean_line, count, fit, stamp, width};
use crate::transcript::Speaker;

/// Below this, only rows are shown.
const TINY_ROWS: u16 = 5;

pub(crate) const KEYS: &Keys = &[
    ("Enter", "switch"),
    ("f", "fork"),
    ("l", "label"),
    ("/", "search"),
    ("^←/^→", "fold"),
    ("^U", "user"),
    ("^T", "no tools"),
    ("^L", "labelled"),
    ("^A", "all"),
    ("^D", "messages"),
    ("Esc", "back"),
    ("↑↓ j k", "move"),
    ("←→ PgUp PgDn", "page"),
    ("^O", "next filter"),
    ("T", "times of labels"),
];

struct Areas {
    header: Rect,
    rule: Rect,
    list: Rect,
    footer: Rect,
}

fn areas(area: Rect) -> Areas {
    if area.height < TINY_ROWS {
        let none = Rect { height: 0, ..area };
        return Areas { header: none, rule: none, list: area, footer: none };
    }
    let list = Rect { y: area.y + 2, height: area.height - 3, ..area };
    Areas { header: row(area, 0), rule: row(area, 1), list, footer: row(area, area.height - 1) }
}

/// How many rows of the tree are visible.
pub(super) fn list_rows(state: &TreeState) -> usize {
    let area = Rect::new(0, 0, state.size.columns, state.size.rows);
    usize::from(areas(area).list.height)
}

/// Draws the navigator.
pub(crate) fn view(state: &TreeState, frame: &mut Frame, theme: Theme) {
    let area = frame.area();
    let areas = areas(area);
    header(frame, areas.header, theme, &title(state), &facts(state));
    let rule = "─".repeat(usize::from(areas.rule.width));
    frame.render_widget(Line::styled(rule, theme.dim()), areas.rule);
    rows(state, frame, areas.list, theme);
    footer(frame, areas.footer, theme, state.status.as_ref(), KEYS);
    overlay(state, frame, area, theme);
}

fn title(state: &TreeState) -> String {
    let caption = state.session.as_ref().map_or(state.id.as_str(), |session| session.caption());
    format!("Session Tree · {caption}")
}

fn facts(state: &TreeState) -> String {
    let loading = if state.is_loading { " · reading…" } else { "" };
    let (seen, all) = (state.drawing.rows.len(), state.forest.nodes.len());
    format!("{seen} of {all} · {}{loading}", state.filter.words())
}

fn rows(state: &TreeState, frame: &mut Frame, area: Rect, theme: Theme) {
    if state.drawing.rows.is_empty() {
        let words = if state.is_loading {
            "Reading…"
        } else if state.forest.nodes.is_empty() {
            "The session has no entries yet."
        } else {
            "No entries with this filter. Ctrl+D shows messages, Ctrl+A everything."
        };
        let line = Line::styled(fit(words, usize::from(area.width)), theme.dim());
        frame.render_widget(line, row(area, 0));
        return;
    }
    let range = state.window.range(state.drawing.rows.len(), usize::from(area.height));
    for (at, number) in range.enumerate() {
        let Some(drawn) = state.drawing.rows.get(number) else { continue };
        let line = row_line(state, *drawn, usize::from(area.width), theme);
        let line =
            if number == state.window.chosen { line.patch_style(theme.chosen()) } else { line };
        frame.render_widget(line, row(area, u16::try_from(at).unwrap_or(u16::MAX)));
    }
}

fn row_line<'a>(state: &TreeState, drawn: Row, columns: usize, theme: Theme) -> Line<'a> {
    let Some(node) = state.forest.node(drawn.node) else {
        return Line::default();
    };
    let is_active = state.active.contains(&drawn.node);
    let end = if state.active_end == Some(drawn.node) { " ← active" } else { "" };
    let fold = match (drawn.can_fold, drawn.is_folded) {
        (_, true) => "⊞ ",
        (true, false) => "⊟ ",
        (false, false) => "",
    };
    let mut spans = vec![
        Span::styled(if is_active { "• " } else { "  " }, theme.good()),
        Span::styled(state.drawing.gutter(drawn), theme.dim()),
        Span::styled(fold, theme.dim()),
    ];
    if let Some(label) = state.forest.label(drawn.node) {
        let when =
            if state.show_label_times { format!(" {}", stamp(label.at_ms)) } else { String::new() };
        spans.push(Span::styled(format!("[{}{when}] ", clean_line(&label.text)), theme.label()));
    }
    let (who, what) = entry_words(&node.entry);
    spans.push(Span::styled(format!("{who}: "), theme.speaker(speaker(&node.entry))));
    let used: usize = spans.iter().map(|span| width(&span.content)).sum();
    let columns_left = columns.saturating_sub(used + width(end));
    let style = if is_active { Style::new() } else { theme.dim() };
    spans.push(Span::styled(fit(&what, columns_left), style));
    spans.push(Span::styled(end, theme.good()));
    Line::from(spans)
}

fn speaker(entry: &Outline) -> Speaker {
    match entry.role {
        Some(Role::User) => Speaker::User,
        Some(Role::Assistant) => Speaker::Assistant,
        Some(Role::FunctionResult) => Speaker::Tool,
        Some(Role::Custom) => Speaker::Application,
        None => Speaker::Note,
    }
}

/// The role and the text of an entry, sanitised and in one line.
pub(super) fn entry_words(entry: &Outline) -> (String, String) {
    let who = match (entry.role, entry.custom_type.as_deref()) {
        (Some(Role::FunctionResult), _) => "tool".to_owned(),
        (Some(role), _) => role.as_str().to_owned(),
        (None, Some(kind)) => kind.strip_prefix("bough.").unwrap_or(kind).replace('_', " "),
        (None, None) => "entry".to_owned(),
    };
    let calls = if entry.calls.is_empty() {
        String::new()
    } else {
        format!("→ {}", entry.calls.join(", "))
    };
    let parts: Vec<&str> = [entry.preview.as_str(), calls.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let what = if parts.is_empty() { "(nothing)".to_owned() } else { parts.join(" ") };
    (clean_line(&who).into_owned(), clean_line(&what).into_owned())
}

fn overlay(state: &TreeState, frame: &mut Frame, area: Rect, theme: Theme) {
    let columns_left = usize::from(area.width).saturating_sub(8);
    let typed = |text: &str| Line::from(format!("{}▏", fit(&clean_line(text), columns_left)));
    match &state.mode {
        Mode::Browse => {}
        Mode::Label(input) => {
            let hint = Line::styled(
                "Enter sets the label, an empty one removes it · Esc cancels",
                theme.dim(),
            );
            dialog(frame, area, theme, "Label", &[typed(input.text()), hint]);
        }
        Mode::ConfirmSwitch(_) => {
            let lines = [
                Line::styled("The session is working.", theme.warning()),
                Line::from("Switching now may disturb the agent that writes it."),
                Line::styled("y switches anyway · any other key cancels", theme.dim()),
            ];
            dialog(frame, area, theme, "Switch?", &lines);
        }
        Mode::Focus { input, .. } => {
            let hint = Line::styled("Enter summarises · Esc goes back", theme.dim());
            dialog(frame, area, theme, "What to pay attention to", &[typed(input.text()), hint]);
        }
        Mode::Summary { choice, option } => {
            let mut lines: Vec<Line<'_>> = Vec::new();
            for (at, words) in SUMMARY_OPTIONS.iter().enumerate() {
                let mark = if at == *option { "› " } else { "  " };
                let style = if at == *option { theme.chosen() } else { Style::new() };
                lines.push(Line::styled(format!("{mark}{words}"), style));
            }
            lines.push(Line::styled("Enter chooses · Esc cancels", theme.dim()));
            let left = choice.left_behind as u64;
            let title = format!("{} left behind", count(left, "message is", "messages are"));
            dialog(frame, area, theme, &title, &lines);
        }
    }
}
