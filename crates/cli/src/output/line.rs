use crate::text::clean_line;

/// The style of a piece of a line, by its meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    #[default]
    Plain,
    Strong,
    Dim,
    Warning,
    Error,
    User,
    Assistant,
    Tool,
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Warning => "\x1b[33m",
            Self::Error => "\x1b[1;31m",
            Self::User => "\x1b[36m",
            Self::Assistant => "\x1b[35m",
            Self::Tool => "\x1b[34m",
        }
    }

    /// Adds text in this style. The text must be sanitised already.
    pub(super) fn push_to(self, out: &mut String, text: &str, color: bool) {
        let code = self.code();
        if color && !code.is_empty() {
            out.push_str(code);
            out.push_str(text);
            out.push_str("\x1b[0m");
        } else {
            out.push_str(text);
        }
    }
}

/// One line of text in styled pieces. Every piece is sanitised when it is added, so no text can bring its own escapes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pieces: Vec<(Style, String)>,
}

impl Line {
    pub(crate) fn of(style: Style, text: impl AsRef<str>) -> Self {
        Self::default().add(style, text)
    }

    pub(crate) fn add(mut self, style: Style, text: impl AsRef<str>) -> Self {
        self.pieces.push((style, clean_line(text.as_ref()).into_owned()));
        self
    }

    pub(crate) fn plain(self, text: impl AsRef<str>) -> Self {
        self.add(Style::Plain, text)
    }

    pub(crate) fn dim(self, text: impl AsRef<str>) -> Self {
        self.add(Style::Dim, text)
    }

    pub(super) fn render(&self, color: bool) -> String {
        let mut text = String::new();
        for (style, piece) in &self.pieces {
            style.push_to(&mut text, piece, color);
        }
        text
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Self {
        Self::of(Style::Plain, text)
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self::of(Style::Plain, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_no_escapes_but_ours() {
        let line = Line::of(Style::Error, "bad\u{1b}[0m").plain(" news\n");
        assert_eq!(line.render(false), "bad␛[0m news ");
        assert_eq!(line.render(true), "\x1b[1;31mbad␛[0m\x1b[0m news ");
    }
}
