//! Colours and small pieces that all screens share.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

use super::input::Input;
use crate::text::{clean_line, fit, pad, width, wrap};
use crate::transcript::Speaker;

/// The styles of the screens; without colours, by weight alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    pub(crate) color: bool,
}

impl Theme {
    fn tint(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    pub(crate) fn title(self) -> Style {
        self.tint(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn dim(self) -> Style {
        if self.color {
            Style::new().fg(Color::DarkGray)
        } else {
            Style::new().add_modifier(Modifier::DIM)
        }
    }

    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn good(self) -> Style {
        self.tint(Color::Green)
    }

    pub(crate) fn warning(self) -> Style {
        self.tint(Color::Yellow)
    }

    pub(crate) fn problem(self) -> Style {
        self.tint(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn label(self) -> Style {
        self.tint(Color::Yellow)
    }

    pub(crate) fn speaker(self, speaker: Speaker) -> Style {
        match speaker {
            Speaker::User => self.tint(Color::Cyan).add_modifier(Modifier::BOLD),
            Speaker::Assistant => self.tint(Color::Magenta),
            Speaker::Tool => self.tint(Color::Blue),
            Speaker::Application | Speaker::Note => self.dim(),
        }
    }
}

/// The area at a row, one row high; empty when there is no such row.
pub(crate) fn row(area: Rect, at: u16) -> Rect {
    let y = area.y.saturating_add(at);
    let height = u16::from(at < area.height);
    Rect { y: y.min(area.bottom()), height, ..area }
}

/// One line at the top: a title at the left, facts at the right.
pub(crate) fn header(frame: &mut Frame, area: Rect, theme: Theme, left: &str, right: &str) {
    let columns = usize::from(area.width);
    let right = fit(&clean_line(right), columns / 2);
    let columns_left = columns.saturating_sub(width(&right) + 1);
    let line = Line::from(vec![
        Span::styled(pad(&clean_line(left), columns_left), theme.title()),
        Span::raw(" "),
        Span::styled(right, theme.dim()),
    ]);
    frame.render_widget(line, area);
}

/// A line that a person types in, with a rule below it: a prompt, and the text or what can be typed.
pub(crate) fn input_line(
    frame: &mut Frame,
    area: Rect,
    theme: Theme,
    (prompt, placeholder): (&'static str, &'static str),
    input: &Input,
) {
    let text = match input.is_empty() {
        true => Span::styled(placeholder, theme.dim()),
        false => {
            let columns = usize::from(area.width).saturating_sub(prompt.len() + 1);
            Span::styled(fit(&clean_line(input.text()), columns), theme.strong())
        }
    };
    frame.render_widget(Line::from(vec![Span::raw(prompt), text]), area);
    if area.height > 0 {
        let rule = Rect { y: area.y + 1, ..area };
        frame.render_widget(Line::styled("─".repeat(usize::from(area.width)), theme.dim()), rule);
    }
}

/// Puts the cursor behind what is typed after a prompt.
pub(crate) fn place_cursor(frame: &mut Frame, area: Rect, prompt: &str, input: &Input) {
    if area.height > 0 {
        let column = u16::try_from(input.cursor_columns() + prompt.len()).unwrap_or(u16::MAX);
        let x = area.x.saturating_add(column).min(area.right().saturating_sub(1));
        frame.set_cursor_position(Position { x, y: area.y });
    }
}

/// The keys of a screen and what they do, the most important first.
pub(crate) type Keys = [(&'static str, &'static str)];

/// The key that shows all keys, on every screen.
const ALL_KEYS: (&str, &str) = ("F1", "keys");

/// One line at the bottom: the last status, or the available keys.
pub(crate) fn footer(
    frame: &mut Frame,
    area: Rect,
    theme: Theme,
    status: Option<&Status>,
    keys: &Keys,
) {
    let columns = usize::from(area.width);
    let line = match status {
        Some(status) => {
            let style = if status.is_problem { theme.problem() } else { theme.good() };
            Line::styled(fit(&clean_line(&status.text), columns), style)
        }
        None => Line::styled(fit(&keys_line(keys, columns), columns), theme.dim()),
    };
    frame.render_widget(line, area);
}

/// As many keys as fit; if not all do, the key that shows all of them is included.
fn keys_line(keys: &Keys, columns: usize) -> String {
    let mut items: Vec<String> = keys.iter().map(key_text).collect();
    let fits = |items: &[String]| width(&items.join(SEPARATOR)) <= columns;
    if !fits(&items) {
        items.push(key_text(&ALL_KEYS));
        while items.len() > 2 && !fits(&items) {
            items.remove(items.len() - 2);
        }
    }
    items.join(SEPARATOR)
}

const SEPARATOR: &str = " · ";

fn key_text((key, does): &(&str, &str)) -> String {
    format!("{key} {does}")
}

/// All keys of a screen, over it.
pub(crate) fn keys_dialog(frame: &mut Frame, theme: Theme, keys: &Keys) {
    let key_columns = keys.iter().map(|(key, _)| width(key)).max().unwrap_or(0);
    let mut lines: Vec<Line<'_>> = keys
        .iter()
        .map(|(key, does)| {
            let key = Span::styled(pad(key, key_columns), theme.strong());
            Line::from(vec![key, Span::raw(format!("  {does}"))])
        })
        .collect();
    lines.push(Line::styled("any key closes this", theme.dim()));
    dialog(frame, frame.area(), theme, "Keys", &lines);
}

/// A status message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) text: String,
    pub(crate) is_problem: bool,
}

impl Status {
    pub(crate) fn done(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_problem: false }
    }

    pub(crate) fn problem(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_problem: true }
    }
}

/// A box in the middle with a question and the ways to answer it.
pub(crate) fn dialog(frame: &mut Frame, area: Rect, theme: Theme, title: &str, lines: &[Line<'_>]) {
    let wanted = lines.iter().map(Line::width).max().unwrap_or(0).max(width(title) + 2) + 4;
    let columns = u16::try_from(wanted).unwrap_or(u16::MAX).min(area.width);
    let rows = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let inner = Rect {
        x: area.x + (area.width - columns) / 2,
        y: area.y + (area.height - rows) / 2,
        width: columns,
        height: rows,
    };
    frame.render_widget(Clear, inner);
    let block =
        Block::new().borders(Borders::ALL).title(fit(&clean_line(title), usize::from(columns)));
    let padded: Vec<Line<'_>> = lines
        .iter()
        .map(|line| {
            let mut line = line.clone();
            line.spans.insert(0, Span::raw(" "));
            line
        })
        .collect();
    frame.render_widget(Paragraph::new(padded).block(block.border_style(theme.title())), inner);
}

/// Text wrapped to the lines of an area, sanitised.
pub(crate) fn text_lines<'a>(text: &str, area: Rect, style: Style) -> Vec<Line<'a>> {
    let clean = crate::text::clean_text(text);
    let lines = wrap(&clean, usize::from(area.width), usize::from(area.height));
    lines.into_iter().map(|line| Line::styled(line, style)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_do_not_fit_give_way_to_the_one_that_shows_them_all() {
        let keys = [("Enter", "open"), ("^D", "delete"), ("Esc", "quit")];
        let check = |columns, expected: &str| assert_eq!(keys_line(&keys, columns), expected);
        check(80, "Enter open · ^D delete · Esc quit");
        check(32, "Enter open · ^D delete · F1 keys");
        check(22, "Enter open · F1 keys");
        check(3, "Enter open · F1 keys");
    }
}
