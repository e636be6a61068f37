use serde::Serialize;

use super::Output;
use crate::command_error::CommandResult;
use crate::text::escape_json;

const INDENT: &str = "  ";

/// A JSON object that is printed member by member, so that it need not be in memory as a whole. Its lists are printed item
/// by item, one on each line. An object in it is printed in the same way.
pub(crate) struct JsonMembers<'a> {
    output: &'a Output,
    /// Whether the present object has members, and those around it.
    has_members: bool,
    depth: usize,
    has_items: bool,
}

impl<'a> JsonMembers<'a> {
    pub(super) const fn new(output: &'a Output) -> Self {
        Self { output, has_members: false, depth: 1, has_items: false }
    }

    /// Prints a member.
    pub(crate) fn member(&mut self, name: &str, value: &impl Serialize) -> CommandResult<()> {
        self.name(name)?;
        self.value(value)
    }

    /// Begins a member that is an object; the members that follow are its own.
    pub(crate) fn begin_object(&mut self, name: &str) -> CommandResult<()> {
        self.name(name)?;
        self.has_members = false;
        self.depth += 1;
        Ok(())
    }

    /// Ends that object.
    pub(crate) fn end_object(&mut self) -> CommandResult<()> {
        let is_empty = !std::mem::replace(&mut self.has_members, true);
        self.depth -= 1;
        match is_empty {
            true => self.print("{}"),
            false => self.print(&format!("\n{}}}", self.indent())),
        }
    }

    /// Begins a member that is a list.
    pub(crate) fn begin_list(&mut self, name: &str) -> CommandResult<()> {
        self.name(name)?;
        self.has_items = false;
        self.print("[")
    }

    /// Prints an item of the list that was begun.
    pub(crate) fn item(&mut self, value: &impl Serialize) -> CommandResult<()> {
        let comma = if std::mem::replace(&mut self.has_items, true) { "," } else { "" };
        self.print(&format!("{comma}\n{}{INDENT}", self.indent()))?;
        self.value(value)
    }

    /// Ends the list.
    pub(crate) fn end_list(&mut self) -> CommandResult<()> {
        match self.has_items {
            true => self.print(&format!("\n{}]", self.indent())),
            false => self.print("]"),
        }
    }

    /// Ends the object.
    pub(crate) fn finish(self) -> CommandResult<()> {
        self.print(if self.has_members { "\n}\n" } else { "{}\n" })
    }

    fn indent(&self) -> String {
        INDENT.repeat(self.depth)
    }

    fn name(&mut self, name: &str) -> CommandResult<()> {
        let mark = if std::mem::replace(&mut self.has_members, true) { "," } else { "{" };
        self.print(&format!("{mark}\n{}", self.indent()))?;
        self.value(&name)?;
        self.print(": ")
    }

    fn value(&self, value: &impl Serialize) -> CommandResult<()> {
        let text = serde_json::to_string(value)?;
        self.print(&escape_json(&text))
    }

    fn print(&self, text: &str) -> CommandResult<()> {
        self.output.write_out(text.as_bytes())
    }
}
