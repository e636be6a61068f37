use bough_service::api::{SearchHit, SearchSnippet};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::theme::{Keys, Theme, footer, header, input_line, place_cursor, row};
use super::state::{SearchState, Within};
use crate::search_hit;
use crate::text::{clean_line, fit, pad, width};

/// Below this, only hits are shown.
const TINY_ROWS: u16 = 5;
/// Rows of a hit: its session, and its text.
const HIT_ROWS: u16 = 2;
/// Columns before the match, if the text has to be cut.
const LEAD_COLUMNS: usize = 12;
const PROMPT: &str = "/ ";
const PLACEHOLDER: &str = "words, \"a phrase\", role:user, after:3d";

pub(crate) const KEYS: &Keys = &[
    ("Enter", "open"),
    ("↑↓ PgUp PgDn", "move"),
    ("Esc", "back"),
    ("\"a b\"", "a phrase"),
    ("-word", "without it"),
    ("role:user tool:bash is:thinking after:3d", "filters"),
];

struct Areas {
    header: Rect,
    input: Rect,
    list: Rect,
    footer: Rect,
}

fn areas(area: Rect) -> Areas {
    if area.height < TINY_ROWS {
        let none = Rect { height: 0, ..area };
        return Areas { header: none, input: none, list: area, footer: none };
    }
    let list = Rect { y: area.y + 3, height: area.height - 4, ..area };
    let footer = row(area, area.height - 1);
    Areas { header: row(area, 0), input: row(area, 1), list, footer }
}

/// How many hits are visible.
pub(super) fn list_hits(state: &SearchState) -> usize {
    let area = Rect::new(0, 0, state.size.columns, state.size.rows);
    usize::from(areas(area).list.height / HIT_ROWS).max(1)
}

/// Draws the screen.
pub(crate) fn view(state: &SearchState, frame: &mut Frame, theme: Theme) {
    let areas = areas(frame.area());
    let title = match state.within {
        Within::Everything => "Search all sessions",
        Within::Session(_) => "Search this session",
    };
    header(frame, areas.header, theme, title, &facts(state));
    input_line(frame, areas.input, theme, (PROMPT, PLACEHOLDER), &state.input);
    place_cursor(frame, areas.input, PROMPT, &state.input);
    hits(state, frame, areas.list, theme);
    footer(frame, areas.footer, theme, state.status.as_ref(), KEYS);
}

fn facts(state: &SearchState) -> String {
    let more = if state.next.is_some() { "+" } else { "" };
    let behind = match state.index {
        Some(index) if !index.is_complete => " · the index is still behind",
        _ => "",
    };
    let searching = if state.is_searching() { " · searching…" } else { "" };
    let hits = if state.hits.len() == 1 && state.next.is_none() { "hit" } else { "hits" };
    format!("{}{more} {hits}{behind}{searching}", state.hits.len())
}

fn hits(state: &SearchState, frame: &mut Frame, area: Rect, theme: Theme) {
    if state.hits.is_empty() {
        let words = match (state.input.is_empty(), state.is_searching()) {
            (true, _) => "Type what you remember of it.",
            (false, true) => "Searching…",
            (false, false) => "Nothing fits. Fewer words find more.",
        };
        let line = Line::styled(fit(words, usize::from(area.width)), theme.dim());
        frame.render_widget(line, row(area, 0));
        return;
    }
    let range = state.window.range(state.hits.len(), list_hits(state));
    for (at, number) in range.enumerate() {
        let Some(hit) = state.hits.get(number) else { continue };
        let top = u16::try_from(at).unwrap_or(u16::MAX).saturating_mul(HIT_ROWS);
        let mut heading = heading(state, hit, usize::from(area.width), theme);
        if number == state.window.chosen {
            heading = heading.patch_style(theme.chosen());
        }
        frame.render_widget(heading, row(area, top));
        if let Some(snippet) = &hit.snippet {
            let line = snippet_line(snippet, usize::from(area.width), theme);
            frame.render_widget(line, row(area, top.saturating_add(1)));
        }
    }
}

fn heading<'a>(state: &SearchState, hit: &SearchHit, columns: usize, theme: Theme) -> Line<'a> {
    let (who, facts) = (search_hit::who(hit), search_hit::facts(hit, state.now_ms));
    if matches!(state.within, Within::Session(_)) {
        // All hits have the same title.
        return two_columns(who, &facts, columns, theme);
    }
    two_columns(search_hit::title(hit), &format!("{who} · {facts}"), columns, theme)
}

fn two_columns<'a>(left: &str, right: &str, columns: usize, theme: Theme) -> Line<'a> {
    let right = fit(right, columns / 2);
    let columns_left = columns.saturating_sub(width(&right) + 1);
    Line::from(vec![
        Span::styled(pad(&clean_line(left), columns_left), theme.strong()),
        Span::raw(" "),
        Span::styled(right, theme.dim()),
    ])
}

/// A snippet in one line, cut so that the match is visible.
fn snippet_line<'a>(snippet: &SearchSnippet, columns: usize, theme: Theme) -> Line<'a> {
    let columns_left = columns.saturating_sub(2);
    let all: Vec<char> = snippet.text.chars().collect();
    let (first, end) = snippet.highlights.first().copied().unwrap_or_default();
    let lead: String = all.iter().take(end).collect();
    let skip = if width(&clean_line(&lead)) > columns_left {
        first.saturating_sub(LEAD_COLUMNS)
    } else {
        0
    };
    let is_found =
        |at: usize| snippet.highlights.iter().any(|(from, to)| (*from..*to).contains(&at));
    let mut spans = vec![Span::raw("  ")];
    let mut used = 0;
    let mut at = skip;
    while at < all.len() && used < columns_left {
        let found = is_found(at);
        let run: String = all
            .iter()
            .enumerate()
            .skip(at)
            .take_while(|(n, _)| is_found(*n) == found)
            .map(|(_, c)| c)
            .collect();
        at += run.chars().count();
        let text = fit(&clean_line(&run), columns_left - used);
        used += width(&text);
        let style = if found { theme.title() } else { theme.dim() };
        spans.push(Span::styled(text, style));
    }
    Line::from(spans)
}
