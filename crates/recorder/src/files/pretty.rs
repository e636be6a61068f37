//! The layout of session files: two spaces for each level, as common pretty-printers write it.
//!
//! The output equals that of `serde_json`, with one write for each line break instead of one for each level.

use std::io::{self, Write};

use serde_json::ser::Formatter;

/// A comma, a line break and an indentation. Deeper lines are written in several pieces.
const LINE: &[u8; 66] = b",\n                                                                ";

#[derive(Default)]
pub(super) struct Pretty {
    level: usize,
    has_value: bool,
}

impl Pretty {
    #[inline]
    fn line_break<W: ?Sized + Write>(&self, writer: &mut W, comma: bool) -> io::Result<()> {
        let (from, to) = (usize::from(!comma), 2 + self.level * 2);
        if let Some(line) = LINE.get(from..to) {
            return writer.write_all(line);
        }
        writer.write_all(if comma { b",\n" } else { b"\n" })?;
        (0..self.level).try_for_each(|_| writer.write_all(b"  "))
    }

    fn begin<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.level += 1;
        self.has_value = false;
        writer.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.level = self.level.saturating_sub(1);
        if self.has_value {
            self.line_break(writer, false)?;
        }
        writer.write_all(bracket)
    }

    fn begin_item<W: ?Sized + Write>(&self, writer: &mut W, first: bool) -> io::Result<()> {
        self.line_break(writer, !first)
    }
}

impl Formatter for Pretty {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.begin_item(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.begin_item(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_layout_is_the_usual_one() {
        let mut deep = json!([1, {}, [], {"a": []}]);
        for _ in 0..40 {
            deep = json!({"a": [deep, null], "b": {}});
        }
        for value in [deep, json!([]), json!({"a": {"b": [1, "x\n"]}}), Value::Null] {
            let mut text = Vec::new();
            let mut writer = serde_json::Serializer::with_formatter(&mut text, Pretty::default());
            value.serialize(&mut writer).unwrap();
            assert_eq!(text, serde_json::to_vec_pretty(&value).unwrap());
        }
    }
}
