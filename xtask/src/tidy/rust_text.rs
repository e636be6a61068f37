//! Rust source as text: comments and strings masked, test modules cut out, functions measured.
//!
//! No parser, only enough of the lexer to know where code is. Masking keeps every line break, so line
//! numbers stay what they were.

/// The source with the content of comments, strings and character literals turned into spaces.
pub(super) fn masked(source: &str) -> String {
    let mut scanner =
        Scanner { rest: source, out: String::with_capacity(source.len()), after_word: false };
    while scanner.step() {}
    scanner.out
}

struct Scanner<'a> {
    rest: &'a str,
    out: String,
    /// Whether the last code character belongs to a word: then `r"` is no raw string.
    after_word: bool,
}

impl Scanner<'_> {
    /// Consumes one token; false at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        let masked_bytes = self.masked_length(first);
        if masked_bytes > 0 {
            self.mask(masked_bytes);
            self.after_word = false;
        } else {
            self.after_word = first.is_alphanumeric() || first == '_';
            self.out.push(first);
            self.rest = self.rest.get(first.len_utf8()..).unwrap_or_default();
        }
        true
    }

    /// How many bytes from here are comment, string or character literal; 0 for code.
    fn masked_length(&self, first: char) -> usize {
        match first {
            '/' if self.rest.starts_with("//") => self.rest.find('\n').unwrap_or(self.rest.len()),
            '/' if self.rest.starts_with("/*") => block_comment_length(self.rest),
            '"' => quoted_length(self.rest),
            'r' | 'b' if !self.after_word => raw_string_length(self.rest),
            '\'' => character_length(self.rest),
            _ => 0,
        }
    }

    fn mask(&mut self, bytes: usize) {
        let (token, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
        self.out.extend(token.chars().map(blank));
        self.rest = rest;
    }
}

fn block_comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0_usize);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// From the opening quote to the closing one.
fn quoted_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `r"..."`, `r#"..."#`, `b"..."`, `br#"..."#`, `b'x'`; 0 for a word that only begins like one.
fn raw_string_length(text: &str) -> usize {
    let after_b = text.strip_prefix('b').unwrap_or(text);
    let bytes_before = text.len() - after_b.len();
    if after_b.starts_with('"') {
        return bytes_before + quoted_length(after_b);
    }
    if bytes_before == 1 && after_b.starts_with('\'') {
        return bytes_before + character_length(after_b);
    }
    let Some(after_r) = after_b.strip_prefix('r') else {
        return 0;
    };
    let after_hashes = after_r.trim_start_matches('#');
    if !after_hashes.starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(after_r.len() - after_hashes.len()));
    let opening = text.len() - after_hashes.len() + 1;
    let content = text.get(opening..).unwrap_or_default();
    content.find(&end).map_or(text.len(), |at| opening + at + end.len())
}

/// A character literal; 0 when the quote begins a lifetime.
fn character_length(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => {
            // Skip the escaped character itself, which may be a quote.
            let closing = characters.skip(1).find(|(_, c)| *c == '\'');
            closing.map_or(0, |(at, _)| at + 1)
        }
        Some(_) => match characters.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

/// Masked source with every `#[cfg(test)] mod name { ... }` blanked, line breaks kept.
pub(super) fn without_test_modules(masked: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::with_capacity(masked.len());
    let mut rest = masked;
    while let Some(at) = rest.find(MARK) {
        let (before, marked) = rest.split_at(at);
        out.push_str(before);
        let length = marked_item_length(marked);
        let (item, after) = marked.split_at(length);
        out.extend(item.chars().filter(|c| *c == '\n'));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The length of an item from its attribute to its closing brace or semicolon.
fn marked_item_length(text: &str) -> usize {
    match text.find(['{', ';']) {
        Some(at) if text.get(at..).is_some_and(|rest| rest.starts_with('{')) => {
            at + block_length(text.get(at..).unwrap_or_default())
        }
        Some(at) => at + 1,
        None => text.len(),
    }
}

/// The length of masked text from its first brace to the one that closes it.
fn block_length(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// A function of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: usize,
    /// From the line with `fn` to the line of the closing brace.
    pub(super) lines: usize,
}

/// The functions with a body in masked source, nested ones too.
pub(super) fn functions(masked: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in masked.match_indices("fn ") {
        let before = masked.get(..at).unwrap_or_default();
        let is_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let after = masked.get(at..).unwrap_or_default();
        if let Some(length) = body_end(after).filter(|_| !is_word) {
            let name = after.get(3..).unwrap_or_default();
            let ends_name = |c: char| !(c.is_alphanumeric() || c == '_');
            let text = after.get(..length).unwrap_or_default();
            found.push(Function {
                name: name.split(ends_name).next().unwrap_or_default().to_owned(),
                line: before.matches('\n').count() + 1,
                lines: text.matches('\n').count() + 1,
            });
        }
    }
    found
}

/// The length of a function's text, or nothing for a declaration without a body.
fn body_end(text: &str) -> Option<usize> {
    let at = text.find(['{', ';'])?;
    let body = text.get(at..)?;
    body.starts_with('{').then(|| at + block_length(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_masked(source: &str, expected: &str) {
        let masked = masked(source);
        assert_eq!(masked.split_whitespace().collect::<Vec<_>>().join(" "), expected, "{source}");
        assert_eq!(masked.matches('\n').count(), source.matches('\n').count(), "{source}");
    }

    #[test]
    fn comments_and_strings_are_masked_and_code_is_not() {
        check_masked("a // b\nc", "a c");
        check_masked("a /* b /* c */ d */ e", "a e");
        check_masked(r#"f("x\"y", z)"#, "f( , z)");
        check_masked("f(r#\"x \" y\"#, z)", "f( , z)");
        check_masked("f(b\"x\", br\"y\", b'q', 'r', '\\'', '\\u{41}')", "f( , , , , , )");
        check_masked("for<'a> fn(&'a str) -> &'a T", "for<'a> fn(&'a str) -> &'a T");
        check_masked("bar(number, r#type, b)", "bar(number, r#type, b)");
        check_masked("x \"two\nlines\" y", "x y");
    }

    #[test]
    fn test_modules_are_cut_and_lines_stay() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let cut = without_test_modules(source);
        assert_eq!(cut, "fn a() {}\n\n\n\n\nfn c() {}\n");
        assert_eq!(without_test_modules("#[cfg(test)]\nmod tests;\nfn d() {}"), "\n\nfn d() {}");
    }

    #[test]
    fn functions_are_measured_and_declarations_are_not() {
        let source =
            "trait T {\n    fn none(&self);\n}\npub fn two<T>(t: T)\nwhere\n    T: U,\n{\n}\n";
        let expected = Function { name: "two".to_owned(), line: 4, lines: 5 };
        assert_eq!(functions(&masked(source)), [expected]);
    }
}
