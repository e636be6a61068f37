use bough_session::SessionStatus;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders};

use super::super::theme::{Keys, Theme, footer, header, row};
use super::lines::{LineKind, TextLine};
use super::state::{From, SessionState};
use crate::text::{cost, count, fit, tokens};

/// From this width on the outline is beside the transcript; below, in its place.
const WIDE: u16 = 90;
/// Below this, only the transcript is shown.
const TINY_ROWS: u16 = 5;

pub(crate) const KEYS: &Keys = &[
    ("PgUp/PgDn", "scroll"),
    ("g/G", "ends"),
    ("n/p", "message"),
    ("Enter", "fold"),
    ("^T", "thinking"),
    ("^O", "tools"),
    ("o", "outline"),
    ("t", "tree"),
    ("/", "search"),
    ("q", "back"),
];

struct Areas {
    header: Rect,
    text: Rect,
    outline: Option<Rect>,
    usage: Rect,
    footer: Rect,
}

fn areas(area: Rect, show_outline: bool) -> Areas {
    if area.height < TINY_ROWS {
        let none = Rect { height: 0, ..area };
        return Areas { header: none, text: area, outline: None, usage: none, footer: none };
    }
    let mut text = Rect { y: area.y + 1, height: area.height - 3, ..area };
    let outline = match (show_outline, area.width >= WIDE) {
        (false, _) => None,
        (true, true) => {
            let columns = area.width / 3;
            text.width -= columns;
            Some(Rect { x: text.right(), width: columns, ..text })
        }
        (true, false) => Some(text),
    };
    let (usage, footer) = (row(area, area.height - 2), row(area, area.height - 1));
    Areas { header: row(area, 0), text, outline, usage, footer }
}

fn of_state(state: &SessionState) -> Areas {
    areas(Rect::new(0, 0, state.size.columns, state.size.rows), state.show_outline)
}

/// How many lines of the transcript are visible.
pub(super) fn text_rows(state: &SessionState) -> usize {
    usize::from(of_state(state).text.height)
}

/// How wide a line of the transcript may be.
pub(super) fn text_columns(state: &SessionState) -> usize {
    usize::from(of_state(state).text.width).saturating_sub(1).max(1)
}

/// Draws the screen.
pub(crate) fn view(state: &SessionState, frame: &mut Frame, theme: Theme) {
    let areas = areas(frame.area(), state.show_outline);
    let caption = state.session.as_ref().map_or(state.id.as_str(), |session| session.caption());
    header(frame, areas.header, theme, caption, &facts(state));
    transcript(state, frame, areas.text, theme);
    if let Some(area) = areas.outline {
        outline(state, frame, area, theme);
    }
    let usage = fit(&usage_line(state), usize::from(areas.usage.width));
    frame.render_widget(Line::styled(usage, theme.dim()), areas.usage);
    footer(frame, areas.footer, theme, state.status.as_ref(), KEYS);
}

fn facts(state: &SessionState) -> String {
    let status = state.session.as_ref().map(|session| match session.meta.status {
        SessionStatus::Idle => "idle",
        SessionStatus::Working => "working",
        SessionStatus::Done => "done",
        SessionStatus::Error => "failed",
    });
    let place = match (state.from, state.follows) {
        (_, _) if state.is_gone => "deleted",
        (_, _) if state.is_cut_off => "not live",
        (From::Tail, true) => "live",
        (From::Tail, false) => "scrolled",
        (From::Head, _) => "from the start",
    };
    format!("{} · {place}", status.unwrap_or("…"))
}

/// The line with messages, tokens, cost and model.
fn usage_line(state: &SessionState) -> String {
    let Some(session) = &state.session else {
        return String::new();
    };
    let total = &session.details.usage.total;
    let mut parts = vec![count(session.meta.message_count, "message", "messages")];
    if total.messages > 0 {
        // Most input tokens come from the cache; without them the line would not explain the cost.
        let cached = total.cache_read.saturating_add(total.cache_write);
        let cached =
            if cached > 0 { format!(", {} cached", tokens(cached)) } else { String::new() };
        parts.push(format!("{} in{cached}, {} out", tokens(total.input), tokens(total.output)));
    }
    let money = cost(total.cost_usd);
    parts.extend(Some(money).filter(|text| !text.is_empty()));
    parts.extend(session.model().map(str::to_owned));
    parts.extend(session.details.context_window.map(|window| format!("window {}", tokens(window))));
    crate::text::clean_line(&parts.join(" · ")).into_owned()
}

fn transcript(state: &SessionState, frame: &mut Frame, area: Rect, theme: Theme) {
    if state.items.is_empty() {
        let words =
            if state.is_loading { "Reading…" } else { "The session has no messages yet." };
        frame.render_widget(Line::styled(words, theme.dim()), row(area, 0));
        return;
    }
    let mut at = state.item_at(state.top);
    let mut skip = state.top - state.line_of(at);
    let mut drawn: u16 = 0;
    while let Some(item) = state.items.get(at).filter(|_| drawn < area.height) {
        for line in item.lines.iter().skip(skip) {
            if drawn >= area.height {
                break;
            }
            let mut style = style_of(line, theme);
            if at == state.chosen && matches!(line.kind, LineKind::Heading(_)) {
                style = style.add_modifier(Modifier::UNDERLINED);
            }
            frame.render_widget(Line::styled(line.text.clone(), style), row(area, drawn));
            drawn += 1;
        }
        skip = 0;
        at += 1;
    }
}

fn style_of(line: &TextLine, theme: Theme) -> Style {
    match line.kind {
        LineKind::Heading(speaker) => theme.speaker(speaker),
        LineKind::Text | LineKind::Empty => Style::new(),
        LineKind::Folded | LineKind::Thinking | LineKind::Result => theme.dim(),
        LineKind::Call => theme.speaker(crate::transcript::Speaker::Tool),
        LineKind::Summary => theme.warning(),
        LineKind::Problem => theme.problem(),
    }
}

fn outline(state: &SessionState, frame: &mut Frame, area: Rect, theme: Theme) {
    frame.render_widget(ratatui::widgets::Clear, area);
    let block = Block::new().borders(Borders::LEFT).border_style(theme.dim()).title(" Loops ");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    // The title takes the first row.
    let inner = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner };
    if state.outline.is_empty() {
        frame.render_widget(Line::styled("no loops", theme.dim()), row(inner, 0));
        return;
    }
    // Show the newest loops.
    let skip = state.outline.len().saturating_sub(usize::from(inner.height));
    for (at, line) in state.outline.iter().skip(skip).enumerate() {
        let text = format!(" {}{}", "  ".repeat(line.depth.min(8)), line.text);
        let text = fit(&text, usize::from(inner.width));
        frame.render_widget(Line::from(text), row(inner, u16::try_from(at).unwrap_or(u16::MAX)));
    }
}
