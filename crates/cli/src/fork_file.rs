//! A fork as a session file of pi: the branch as an export writes it, with a new id.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use bough_migrate::{ExportFormat, ExportOptions, SessionFileName, Spelling, export, format_iso};
use bough_platform::Entropy;
use bough_session::{EntryId, SessionId, hex};
use serde_json::{Map, Value};

use crate::app::App;
use crate::backend::Backend;
use crate::command_error::{CommandError, CommandResult};
use crate::commands::export::failed;
use crate::files::{self, NewFile};

/// The new file.
pub(crate) struct ForkedFile {
    pub(crate) session_id: String,
    pub(crate) path: PathBuf,
}

/// Writes the path to an entry into a new session file. `to` is the file, or the folder that it is made in; `parent` is the
/// file that it is forked from.
pub(crate) async fn fork_to_file(
    app: &App,
    backend: &Backend,
    (session, entry): (&SessionId, &EntryId),
    to: &Path,
    parent: Option<&Path>,
) -> CommandResult<ForkedFile> {
    let (id, now_ms) = (fresh_uuid(app.entropy.as_ref())?, app.now_ms());
    let name = SessionFileName { timestamp_ms: now_ms, id: id.clone(), spelling: Spelling::Dashes };
    let path = if files::is_folder(to) { to.join(name.file_name()) } else { to.to_owned() };
    files::refuse_existing(&path, "name another file, or a directory")?;
    let mut header = Map::new();
    header.insert("id".to_owned(), Value::from(id.as_str()));
    header.insert("timestamp".to_owned(), Value::from(format_iso(now_ms)));
    if let Some(parent) = parent {
        let parent = std::path::absolute(parent)?;
        header.insert("parentSession".to_owned(), Value::from(parent.display().to_string()));
    }
    let options = ExportOptions { format: ExportFormat::Pi, leaf: Some(entry.clone()), cwd: None };
    let mut file = FirstLine::new(BufWriter::new(NewFile::begin(&path)?), header);
    let written = export(&*backend.reads(), session, &options, &mut file).await;
    let file = file.rest.into_inner().map_err(|error| CommandError::from(error.into_error()))?;
    if let Err(error) = written {
        file.discard();
        return Err(failed(error));
    }
    file.finish()?;
    Ok(ForkedFile { session_id: id, path })
}

/// A random id as pi makes them.
fn fresh_uuid(entropy: &dyn Entropy) -> CommandResult<String> {
    let mut bytes = [0_u8; 16];
    entropy.fill(&mut bytes)?;
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
    *version = *version & 0x0f | 0x40;
    *variant = *variant & 0x3f | 0x80;
    let digits = hex(&bytes);
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    Ok(format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)))
}

/// A writer that adds members to the JSON object on the first line, and passes everything else on.
struct FirstLine<W> {
    line: Option<Vec<u8>>,
    members: Map<String, Value>,
    rest: W,
}

impl<W: Write> FirstLine<W> {
    const fn new(rest: W, members: Map<String, Value>) -> Self {
        Self { line: Some(Vec::new()), members, rest }
    }
}

impl<W: Write> Write for FirstLine<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let Some(line) = &mut self.line else {
            return self.rest.write(bytes);
        };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default());
        let Some(end) = end else { return Ok(bytes.len()) };
        let mut header: Map<String, Value> = serde_json::from_slice(line)?;
        header.append(&mut self.members);
        self.line = None;
        writeln!(self.rest, "{}", Value::Object(header))?;
        Ok(end + 1)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.rest.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_first_line_is_changed() {
        for size in [1, 5, 1_000] {
            let members = json!({"id": "new"}).as_object().cloned().unwrap();
            let mut file = FirstLine::new(Vec::new(), members);
            let text = b"{\"type\":\"session\",\"id\":\"old\"}\n{\"id\":\"old\"}\n";
            text.chunks(size).for_each(|part| file.write_all(part).unwrap());
            let written = String::from_utf8(file.rest).unwrap();
            let (first, rest) = written.split_once('\n').unwrap();
            let header: Value = serde_json::from_str(first).unwrap();
            assert_eq!(header, json!({"type": "session", "id": "new"}));
            assert_eq!(rest, "{\"id\":\"old\"}\n");
        }
    }
}
