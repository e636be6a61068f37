//! A folder of session files.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::sync::Arc;

use bough_platform::{Access, Disk, File, LockError, RelPath, host_facts, if_there};
use serde::Serialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::compare::{missing_from, unread_in};
use super::pretty::Pretty;
use super::split;
use super::write::{PieceWriter, is_marked, mark_of};
use super::{AgentSessions, SessionError};
use crate::limits::{FILE_ID_BYTES_MAX, SESSION_FILE_BYTES_MAX};
use crate::lineage::{FileMark, Lineage};
use crate::model::RecordedSession;

/// How much of a file is read to learn whose session it is.
const HEAD_BYTES: usize = 4096;

/// A folder of session files, on any disk. Everything here blocks; [`super::FileSystemSessionStore`] does not.
#[derive(Clone, Debug)]
pub struct SessionFolder {
    disk: Arc<dyn Disk>,
}

/// The names that belong to a session.
struct Names {
    file: RelPath,
    temp: RelPath,
    lock: RelPath,
}

impl SessionFolder {
    /// The folder that is the root of a disk.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk }
    }

    /// Writes a session; see [`super::save_session`].
    pub fn save(&self, session: &RecordedSession) -> Result<(), SessionError> {
        let id = session.session_id.as_str();
        let names = names_of(id)?;
        self.locked(id, &names, || {
            let written = self.replace(session, &names);
            if written.is_err() {
                // The old file is unchanged; the temporary file beside it is useless.
                drop(self.disk.remove_file(&names.temp));
            }
            session.saved_as(written?);
            Ok(())
        })
    }

    /// Reads a session.
    pub fn load(&self, session_id: &str) -> Result<RecordedSession, SessionError> {
        let names = names_of(session_id)?;
        self.read(session_id, &names)?.ok_or_else(|| not_found(session_id))
    }

    /// The ids of all sessions, last changed first.
    pub fn list_ids(&self) -> Result<Vec<String>, SessionError> {
        let root = RelPath::root();
        let listed = self.disk.list(&root).map_err(io_error("list", ""))?;
        let mut found = Vec::new();
        for entry in listed.into_iter().filter(|entry| !entry.is_dir) {
            let id = entry.name.strip_suffix(".json").unwrap_or_default();
            let Ok(names) = names_of(id) else {
                continue;
            };
            // A file may have been removed since the listing.
            if let Ok(Some(stat)) = self.disk.stat(&names.file) {
                found.push((stat.modified_ms, id.to_owned()));
            }
        }
        found.sort_by(|(newer, first), (older, second)| {
            older.cmp(newer).then_with(|| first.cmp(second))
        });
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    /// All sessions of an agent, last changed first. Of the files of other agents only the beginning is
    /// read.
    pub fn load_for_agent(&self, agent_id: &str) -> Result<AgentSessions, SessionError> {
        let mut found = AgentSessions::default();
        for id in self.list_ids()? {
            let names = names_of(&id)?;
            if self.head_agent(&names).is_ok_and(|head| head.is_some_and(|head| head != agent_id)) {
                continue;
            }
            match self.load(&id) {
                Ok(session) if session.agent_id == agent_id => found.sessions.push(session),
                Ok(_) | Err(SessionError::NotFound { .. }) => {}
                Err(error) => {
                    found.unreadable.insert(id, error);
                }
            }
        }
        Ok(found)
    }

    /// Removes a session's file.
    pub fn delete(&self, session_id: &str) -> Result<(), SessionError> {
        let names = names_of(session_id)?;
        let failed = || io_error("delete", session_id);
        if self.disk.stat(&names.file).map_err(failed())?.is_none() {
            return Err(not_found(session_id));
        }
        self.locked(session_id, &names, || {
            match self.disk.remove_file(&names.file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(not_found(session_id));
                }
                removed => removed.map_err(failed())?,
            }
            // An interrupted write may have left this file.
            drop(self.disk.remove_file(&names.temp));
            self.disk.sync_dir(&RelPath::root()).map_err(failed())
        })
    }

    fn locked<T>(
        &self,
        session_id: &str,
        names: &Names,
        work: impl FnOnce() -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let facts = host_facts();
        let holder = format!("pid {} boot {}", facts.pid, facts.boot_id);
        let lock = self.disk.lock(&names.lock, &holder).map_err(|error| match error {
            LockError::Held { .. } => SessionError::Locked { session_id: session_id.to_owned() },
            LockError::Io(error) => io_error("lock", session_id)(error),
        })?;
        let done = work();
        // Dropping a lock frees it too; only its file would stay.
        drop(lock.remove());
        done
    }

    fn refuse_lost_update(
        &self,
        session: &RecordedSession,
        names: &Names,
    ) -> Result<(), SessionError> {
        let id = session.session_id.as_str();
        if let Some(mark) = session.lineage.mark() {
            match is_marked(self.disk.as_ref(), &names.file, mark) {
                Ok(true) => return Ok(()),
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(io_error("compare", id)(error));
                }
                _ => {}
            }
        }
        let Some(mut bytes) = self.read_file(id, names)? else {
            return Ok(());
        };
        let stored = parsed(id, &mut bytes)?;
        let missing = missing_from(session, &stored).or_else(|| unread_in(&bytes, &stored));
        missing.map_or(Ok(()), |missing| {
            Err(SessionError::LostUpdate { session_id: id.to_owned(), missing })
        })
    }

    fn replace(&self, session: &RecordedSession, names: &Names) -> Result<FileMark, SessionError> {
        let failed = || io_error("save", &session.session_id);
        let mut writer = PieceWriter::new(self.new_temp(names).map_err(failed())?);
        let mut json = serde_json::Serializer::with_formatter(&mut writer, Pretty::default());
        session.serialize(&mut json).map_err(|error| failed()(error.into()))?;
        // The disk is busy writing, so this is a good time to compare with the stored file.
        self.refuse_lost_update(session, names)?;
        let mark = writer.finish().map_err(failed())?;
        self.disk.rename(&names.temp, &names.file).map_err(failed())?;
        self.disk.sync_dir(&RelPath::root()).map_err(failed())?;
        Ok(mark)
    }

    fn new_temp(&self, names: &Names) -> io::Result<Box<dyn File>> {
        if self.disk.stat(&names.temp)?.is_some() {
            self.disk.remove_file(&names.temp)?;
        }
        self.disk.create(&names.temp)
    }

    fn read(
        &self,
        session_id: &str,
        names: &Names,
    ) -> Result<Option<RecordedSession>, SessionError> {
        let Some(mut bytes) = self.read_file(session_id, names)? else {
            return Ok(None);
        };
        let mut session = parsed(session_id, &mut bytes)?;
        session.lineage = Lineage::of(mark_of(&bytes));
        Ok(Some(session))
    }

    fn read_file(&self, session_id: &str, names: &Names) -> Result<Option<Vec<u8>>, SessionError> {
        let bytes = self.disk.read_all(&names.file, SESSION_FILE_BYTES_MAX);
        if_there(bytes).map_err(io_error("read", session_id))
    }

    /// The agent of a session file, if its beginning says so.
    fn head_agent(&self, names: &Names) -> io::Result<Option<String>> {
        let file = self.disk.open(&names.file, Access::Read)?;
        let mut head = vec![0; HEAD_BYTES];
        let read = file.read_at(0, &mut head)?;
        head.truncate(read);
        Ok(agent_in(&head))
    }
}

/// The session in the bytes of its file.
fn parsed(session_id: &str, bytes: &mut [u8]) -> Result<RecordedSession, SessionError> {
    let unreadable =
        |source| SessionError::Unreadable { session_id: session_id.to_owned(), source };
    let session: RecordedSession = match split::read(bytes) {
        Some(session) => session,
        None => serde_json::from_slice(bytes).map_err(unreadable)?,
    };
    if session.session_id != session_id {
        return Err(SessionError::WrongSession {
            session_id: session_id.to_owned(),
            found: session.session_id,
        });
    }
    Ok(session)
}

fn names_of(session_id: &str) -> Result<Names, SessionError> {
    let unsafe_id = || SessionError::UnsafeId { session_id: session_id.to_owned() };
    let is_safe = !session_id.is_empty()
        && session_id.len() <= FILE_ID_BYTES_MAX
        && !session_id.chars().any(char::is_control);
    if !is_safe {
        return Err(unsafe_id());
    }
    // The id itself must be a plain name, not only the file names made of it: `..` is refused, although `...json`
    // would do no harm.
    RelPath::root().join(session_id).map_err(|_| unsafe_id())?;
    let name = |suffix: &str| {
        let name = format!("{session_id}{suffix}");
        RelPath::root().join(&name).map_err(|_| unsafe_id())
    };
    Ok(Names { file: name(".json")?, temp: name(".json.tmp")?, lock: name(".json.lock")? })
}

fn io_error(action: &'static str, session_id: &str) -> impl FnOnce(io::Error) -> SessionError {
    let session_id = session_id.to_owned();
    move |source| SessionError::Io { action, session_id, source }
}

fn not_found(session_id: &str) -> SessionError {
    SessionError::NotFound { session_id: session_id.to_owned() }
}

/// The value of `agent_id` in the beginning of a session file, if it is there.
fn agent_in(head: &[u8]) -> Option<String> {
    struct Head<'a>(&'a RefCell<Option<String>>);

    impl<'de> Visitor<'de> for Head<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a session")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<String>()? {
                if key == "agent_id" {
                    *self.0.borrow_mut() = Some(map.next_value()?);
                    break;
                }
                map.next_value::<IgnoredAny>()?;
            }
            Ok(())
        }
    }

    let found = RefCell::new(None);
    // The beginning of a file is not a whole JSON text, so this always ends in an error, before or after it has found
    // the id.
    drop(serde_json::Deserializer::from_slice(head).deserialize_map(Head(&found)));
    found.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_found_in_the_beginning_of_a_file() {
        let check = |head: &str, expected: Option<&str>| {
            assert_eq!(agent_in(head.as_bytes()).as_deref(), expected, "{head}");
        };
        check(r#"{"session_id":"s","agent_id":"a","loops":[{"#, Some("a"));
        check(r#"{"agent_id":"a"}"#, Some("a"));
        check(r#"{"loops":[{"agent_id":"no"}],"agent_id":"yes"}"#, Some("yes"));
        check(r#"{"loops":[{"agent_id":"no"}"#, None);
        check(r#"{"session_id":"s","agent_id":"a"#, None);
        check("", None);
    }

    #[test]
    fn ids_that_are_no_plain_names_are_refused() {
        for id in
            ["", ".", "..", "../x", "/x", "a/b", "a\\b", "a\0b", "a\nb", "c:", &"x".repeat(201)]
        {
            assert!(matches!(names_of(id), Err(SessionError::UnsafeId { .. })), "{id:?}");
        }
        for id in ["a", "550e8400-e29b", "a b", "é", &"x".repeat(200)] {
            assert!(names_of(id).is_ok(), "{id:?}");
        }
    }
}
