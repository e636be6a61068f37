//! Session files of pi that were not migrated, for lists: read only up to their first message.

use std::path::{Path, PathBuf};

use bough_migrate::SessionFileName;
use bough_platform::{Access, Disk, OsDisk, RelPath};
use bough_session::text::preview;
use bough_session::{
    AgentMessage, Canonical, Entry, EntryBody, EntryId, FORMAT_PI, ForeignBody, RawJson,
    SessionDetails, SessionId, SessionMeta, SessionStatus,
};
use serde::Deserialize;

use super::types::Summary;
use crate::limits::{PI_FILE_HEAD_BYTES, PI_FILES_MAX};

/// Characters of a first message that a list shows.
const PREVIEW_CHARS: usize = 200;

/// Where pi keeps its sessions: `PI_CODING_AGENT_DIR`, or `.pi/agent` in the home directory.
pub(super) fn sessions_dir() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let agent = set("PI_CODING_AGENT_DIR").map(PathBuf::from);
    let agent = agent.or_else(|| Some(PathBuf::from(set("HOME")?).join(".pi").join("agent")))?;
    Some(agent.join("sessions"))
}

/// The files below a directory, the last changed first. Files that cannot be read are left out.
pub(super) fn find(dir: &Path) -> Vec<Summary> {
    let mut found = files_of(dir);
    for folder in folders_of(dir) {
        found.extend(files_of(&folder));
    }
    found.sort_by_key(|file| std::cmp::Reverse(file.modified_ms));
    found.truncate(PI_FILES_MAX);
    found.iter().filter_map(SessionFile::summary).collect()
}

struct SessionFile {
    folder: PathBuf,
    name: String,
    modified_ms: i64,
}

fn folders_of(dir: &Path) -> Vec<PathBuf> {
    let listed = OsDisk::open(dir).and_then(|disk| disk.list(&RelPath::root()));
    let folders = listed.unwrap_or_default().into_iter().filter(|one| one.is_dir);
    folders.map(|one| dir.join(one.name)).collect()
}

fn files_of(folder: &Path) -> Vec<SessionFile> {
    let Ok(disk) = OsDisk::open(folder) else { return Vec::new() };
    let listed = disk.list(&RelPath::root()).unwrap_or_default();
    let file = |name: String| {
        let path = RelPath::root().join(&name).ok()?;
        let modified_ms = disk.stat(&path).ok()??.modified_ms;
        Some(SessionFile { folder: folder.to_owned(), name, modified_ms })
    };
    let files = listed.into_iter().filter(|one| !one.is_dir && one.name.ends_with(".jsonl"));
    files.filter_map(|one| file(one.name)).collect()
}

/// The first line of a file.
#[derive(Default, Deserialize)]
struct Header {
    id: Option<String>,
    cwd: Option<String>,
}

impl SessionFile {
    /// The row of a list for the file; `None` if it does not begin as a session does.
    fn summary(&self) -> Option<Summary> {
        let text = self.head()?;
        let mut lines = text.lines();
        let header: Header = serde_json::from_str(lines.next()?).ok()?;
        let named = SessionFileName::parse(&self.name);
        let id = header.id.or_else(|| named.as_ref().map(|name| name.id.clone()))?;
        let metadata = header.cwd.map(|cwd| [("cwd".to_owned(), cwd.into())].into_iter().collect());
        let meta = SessionMeta {
            session_id: SessionId::from_stored(id),
            title: String::new(),
            description: String::new(),
            status: SessionStatus::Idle,
            status_reason: None,
            metadata,
            forked_from: None,
            created_at: named.map_or(self.modified_ms, |name| name.timestamp_ms),
            updated_at: self.modified_ms,
            message_count: 0,
        };
        let preview = lines.find_map(first_words);
        let details = SessionDetails { preview, ..SessionDetails::default() };
        let file = self.folder.join(&self.name).to_str().map(str::to_owned)?;
        Some(Summary { meta, details, active_leaf: None, file: Some(file) })
    }

    /// The beginning of the file, in whole lines.
    fn head(&self) -> Option<String> {
        let path = RelPath::root().join(&self.name).ok()?;
        let file = OsDisk::open(&self.folder).ok()?.open(&path, Access::Read).ok()?;
        let mut bytes = vec![0; PI_FILE_HEAD_BYTES];
        let read = file.read_at(0, &mut bytes).ok()?;
        bytes.truncate(read);
        if read == PI_FILE_HEAD_BYTES {
            let end = bytes.iter().rposition(|byte| *byte == b'\n')?;
            bytes.truncate(end);
        }
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The text of a line that is a user message.
fn first_words(line: &str) -> Option<String> {
    let json = RawJson::parse(line).ok()?;
    let body = ForeignBody { format: FORMAT_PI.to_owned(), json, replaced: None };
    let id = EntryId::from_stored("line");
    let body = EntryBody::Foreign(body);
    let entry = Entry::new(id, None, 0, body);
    let Canonical::Message(message) = entry.canonical() else { return None };
    matches!(&*message, AgentMessage::User(_)).then(|| preview(&message.text(), PREVIEW_CHARS))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "a test makes files of its own")]

    use super::*;

    #[test]
    fn files_are_found_with_their_folder_and_first_message() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("--home-u-x--");
        std::fs::create_dir(&project).unwrap();
        let session = concat!(
            r#"{"type":"session","version":3,"id":"pi-1","timestamp":"2026-02-07T14:00:00.000Z","cwd":"/home/u/x"}"#,
            "\n",
            r#"{"type":"message","id":"a","parentId":null,"timestamp":"2026-02-07T14:00:01.000Z","message":{"role":"user","content":"Fix it","timestamp":1}}"#,
            "\n",
        );
        std::fs::write(project.join("2026-02-07T14-00-00.000Z_pi-1.jsonl"), session).unwrap();
        std::fs::write(project.join("notes.jsonl"), "not a session\n").unwrap();
        let found = find(folder.path());
        assert_eq!(found.len(), 1);
        let one = &found[0];
        assert_eq!(
            (one.id().as_str(), one.cwd(), one.caption()),
            ("pi-1", Some("/home/u/x"), "Fix it")
        );
        assert!(one.file.as_deref().unwrap().ends_with("_pi-1.jsonl"));
        assert!(find(&folder.path().join("none")).is_empty());
    }
}
