//! The others: how far the disk goes by itself, two databases, and the format that came before.

mod jsonl;
mod raw;
mod raw_group;
mod redb;
mod sqlite;

pub(crate) use self::jsonl::JsonlRewrite;
pub(crate) use self::raw::{Raw, Work};
pub(crate) use self::raw_group::RawGroup;
pub(crate) use self::redb::Redb;
pub(crate) use self::sqlite::{Sqlite, Synchronous};

use std::fs::File;
use std::io;
use std::time::Duration;

use crate::Outcome;
use crate::entries::Entry;

/// A store that holds sessions of entries.
pub(crate) trait Peer: Sync {
    /// A writer of one session. Several may exist at once, also for the same session where the peer
    /// allows it.
    fn writer(&self, session: usize) -> Outcome<Box<dyn Writer + Send + '_>>;

    /// Ends all work in the background: the folder is about to be removed.
    fn finish(&self) -> Outcome<()> {
        Ok(())
    }
}

/// Appends to one session. When `append` returns, the entries are as durable as the peer promises.
pub(crate) trait Writer {
    fn append(&mut self, entries: Vec<Entry>) -> Outcome<()>;
}

/// What a sync does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Syncing {
    /// The disk's own fdatasync.
    Real,
    /// Exactly this long and no disk: takes the noise of the machine out of a comparison.
    Wait(Duration),
    /// Nothing: what is written survives the process, not the machine.
    Never,
}

impl Syncing {
    pub(crate) fn sync(self, file: &File) -> io::Result<()> {
        match self {
            Self::Real => file.sync_data(),
            Self::Wait(time) => {
                std::thread::sleep(time);
                Ok(())
            }
            Self::Never => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::Entries;

    /// Two sessions written in turns, some entries at once: every peer keeps them all, apart.
    fn check(peer: &dyn Peer, count: &dyn Fn(usize) -> usize) {
        let (mut one, mut two) = (Entries::of_session(0), Entries::of_session(1));
        let mut first = peer.writer(0).unwrap();
        let mut second = peer.writer(1).unwrap();
        first.append(one.take(3)).unwrap();
        second.append(two.take(1)).unwrap();
        first.append(one.take(2)).unwrap();
        assert_eq!((count(0), count(1)), (5, 1));
    }

    fn lines(path: &std::path::Path) -> usize {
        std::fs::read_to_string(path).unwrap().lines().count()
    }

    #[test]
    fn every_peer_keeps_what_it_was_given() {
        let folder = tempfile::tempdir().unwrap();
        let raw = Raw::new(folder.path().join("raw"), Syncing::Real).unwrap();
        check(&raw, &|session| lines(&raw.path(session)));
        let hashed = Raw::new(folder.path().join("hashed"), Syncing::Never).unwrap();
        let hashed = hashed.working(Work::Chained);
        check(&hashed, &|session| lines(&hashed.path(session)));
        let group = RawGroup::new(folder.path().join("group"), Syncing::Real).unwrap();
        check(&group, &|session| lines(&group.path(session)));
        let jsonl = JsonlRewrite::new(folder.path().join("jsonl"), Syncing::Real).unwrap();
        check(&jsonl, &|session| lines(&jsonl.path(session)));
        let sqlite = Sqlite::new(folder.path().join("sqlite"), Synchronous::Full).unwrap();
        check(&sqlite, &|session| sqlite.count(session).unwrap());
        let redb = Redb::new(folder.path().join("redb"), Syncing::Real).unwrap();
        check(&redb, &|session| redb.count(session).unwrap());
    }
}
