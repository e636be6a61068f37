//! Writing HTML: everything that is text is escaped.

use std::fmt::Write as _;

use super::STYLE_PATH;

/// A page that is being written.
pub(super) struct Page(String);

impl Page {
    pub(super) fn new() -> Self {
        Self(String::new())
    }

    /// Begins the page.
    pub(super) fn open(&mut self, title: &str, version: &str) {
        self.raw("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
        self.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
        self.raw("<meta name=\"color-scheme\" content=\"light dark\"><title>");
        self.text(title);
        self.raw("</title><link rel=\"stylesheet\" href=\"");
        self.raw(STYLE_PATH);
        self.raw("\"></head><body><header><a href=\"/docs\">Bough API</a> <span>");
        self.text(version);
        self.raw("</span></header>");
    }

    pub(super) fn close(mut self) -> String {
        self.raw("</body></html>\n");
        self.0
    }

    pub(super) fn raw(&mut self, html: &str) {
        self.0.push_str(html);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.0.push_str(&escape(text));
    }

    pub(super) fn link(&mut self, to: &str, text: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "<a href=\"{}\">{}</a>", escape(to), escape(text));
    }

    pub(super) fn heading(&mut self, level: u8, id: &str, text: &str) {
        let (id, text) = (escape(id), escape(text));
        let _ = write!(self.0, "<h{level} id=\"{id}\"><a href=\"#{id}\">{text}</a></h{level}>");
    }

    /// A text with `code` in it. A list begins on lines of their own.
    pub(super) fn paragraph(&mut self, text: &str) {
        for part in text.split("\n\n").filter(|part| !part.is_empty()) {
            let is_list = part.starts_with("- ");
            self.raw(if is_list { "<ul>" } else { "<p>" });
            if is_list {
                for item in part.split('\n').map(|line| line.trim_start_matches("- ")) {
                    let _ = write!(self.0, "<li>{}</li>", with_code(item));
                }
            } else {
                self.raw(&with_code(part));
            }
            self.raw(if is_list { "</ul>" } else { "</p>" });
        }
    }

    pub(super) fn code(&mut self, label: &str, code: &str) {
        let (label, code) = (escape(label), escape(code));
        let _ = write!(
            self.0,
            "<figure><figcaption>{label}</figcaption><pre tabindex=\"0\"><code>{code}</code></pre></figure>"
        );
    }

    pub(super) fn open_table(&mut self, heads: &[&str]) {
        self.raw("<div class=\"table\" tabindex=\"0\"><table><thead><tr>");
        for head in heads {
            let _ = write!(self.0, "<th scope=\"col\">{}</th>", escape(head));
        }
        self.raw("</tr></thead><tbody>");
    }

    pub(super) fn row(&mut self, cells: &[&str]) {
        self.open_row();
        cells.iter().for_each(|cell| self.cell(cell));
        self.close_row();
    }

    pub(super) fn open_row(&mut self) {
        self.raw("<tr>");
    }

    pub(super) fn close_row(&mut self) {
        self.raw("</tr>");
    }

    pub(super) fn cell(&mut self, text: &str) {
        self.open_cell();
        self.raw(&with_code(text));
        self.close_cell();
    }

    pub(super) fn open_cell(&mut self) {
        self.raw("<td>");
    }

    pub(super) fn close_cell(&mut self) {
        self.raw("</td>");
    }

    pub(super) fn close_table(&mut self) {
        self.raw("</tbody></table></div>");
    }
}

/// Turns text between backquotes into code.
fn with_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(|(number, part)| match number % 2 {
            1 => format!("<code>{}</code>", escape(part)),
            _ => escape(part),
        })
        .collect()
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_and_backquotes_make_code() {
        let mut page = Page::new();
        page.paragraph("a <b> `x<y`\n\n- one\n- `two`");
        let expected =
            "<p>a &lt;b&gt; <code>x&lt;y</code></p><ul><li>one</li><li><code>two</code></li></ul>";
        assert_eq!(page.0, expected);
    }
}
