use serde::Serialize;

use super::Output;
use crate::command_error::CommandResult;
use crate::text::escape_json;

/// A JSON object that is printed member by member, so that it need not be in memory as a whole. Its lists are printed item
/// by item, one on each line.
pub(crate) struct JsonMembers<'a> {
    output: &'a Output,
    has_members: bool,
    has_items: bool,
}

impl<'a> JsonMembers<'a> {
    pub(super) const fn new(output: &'a Output) -> Self {
        Self { output, has_members: false, has_items: false }
    }

    /// Prints a member.
    pub(crate) fn member(&mut self, name: &str, value: &impl Serialize) -> CommandResult<()> {
        self.name(name)?;
        self.value(value)
    }

    /// Begins a member that is a list.
    pub(crate) fn begin_list(&mut self, name: &str) -> CommandResult<()> {
        self.name(name)?;
        self.has_items = false;
        self.print("[")
    }

    /// Prints an item of the list that was begun.
    pub(crate) fn item(&mut self, value: &impl Serialize) -> CommandResult<()> {
        let before =
            if std::mem::replace(&mut self.has_items, true) { ",\n    " } else { "\n    " };
        self.print(before)?;
        self.value(value)
    }

    /// Ends the list.
    pub(crate) fn end_list(&mut self) -> CommandResult<()> {
        self.print(if self.has_items { "\n  ]" } else { "]" })
    }

    /// Ends the object.
    pub(crate) fn finish(self) -> CommandResult<()> {
        self.print(if self.has_members { "\n}\n" } else { "{}\n" })
    }

    fn name(&mut self, name: &str) -> CommandResult<()> {
        let before = if std::mem::replace(&mut self.has_members, true) { ",\n  " } else { "{\n  " };
        self.print(before)?;
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
