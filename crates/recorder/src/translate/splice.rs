//! Changing parts of a JSON text, with every other byte left as it is.

use std::ops::Range;

/// Where a part that was borrowed from a text stands in it.
pub(super) fn range_in(text: &str, part: &str) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let range = start..start + part.len();
    (text.get(range.clone())? == part).then_some(range)
}

/// Replacements of parts of a text, in their order.
pub(super) struct Splice<'a> {
    text: &'a str,
    spliced: String,
    copied: usize,
}

impl<'a> Splice<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, spliced: String::new(), copied: 0 }
    }

    /// Puts other text in the place of a part, which must be behind all those that were replaced.
    pub(super) fn replace(&mut self, part: &str, with: &str) {
        let Some(range) = range_in(self.text, part) else {
            return;
        };
        let Some(between) = self.text.get(self.copied..range.start) else {
            return;
        };
        self.spliced.push_str(between);
        self.spliced.push_str(with);
        self.copied = range.end;
    }

    /// The text with all replacements.
    pub(super) fn finish(mut self) -> String {
        self.spliced.push_str(self.text.get(self.copied..).unwrap_or_default());
        self.spliced
    }
}
