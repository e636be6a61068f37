//! Colours and small pieces that all screens share.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

use crate::text::{clean_line, fit, pad, width, wrap};
use crate::transcript::Speaker;

/// How things look; without colours, by weight alone.
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
    let room = columns.saturating_sub(width(&right) + 1);
    let line = Line::from(vec![
        Span::styled(pad(&clean_line(left), room), theme.title()),
        Span::raw(" "),
        Span::styled(right, theme.dim()),
    ]);
    frame.render_widget(line, area);
}

/// One line at the bottom: what just happened, or which keys there are.
pub(crate) fn footer(
    frame: &mut Frame,
    area: Rect,
    theme: Theme,
    status: Option<&Status>,
    keys: &str,
) {
    let columns = usize::from(area.width);
    let line = match status {
        Some(status) => {
            let style = if status.is_problem { theme.problem() } else { theme.good() };
            Line::styled(fit(&clean_line(&status.text), columns), style)
        }
        None => Line::styled(fit(keys, columns), theme.dim()),
    };
    frame.render_widget(line, area);
}

/// What just happened.
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

/// Text in the lines that an area has, made harmless.
pub(crate) fn text_lines<'a>(text: &str, area: Rect, style: Style) -> Vec<Line<'a>> {
    let clean = crate::text::clean_text(text);
    let lines = wrap(&clean, usize::from(area.width), usize::from(area.height));
    lines.into_iter().map(|line| Line::styled(line, style)).collect()
}
