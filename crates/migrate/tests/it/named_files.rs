//! Files as a person names them: links, pipes, folders that are closed.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "tests make and break files of their own")]

use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use crate::common::*;
use bough_migrate::{Migrator, OsV1Files, Result, V1File, V1Files};
use bough_platform::Platform;
use bough_store::SessionDirectory;
use bough_testkit::SimDisk;

fn on_real_disk(folder: &Path) -> Migrator {
    let platform = Platform::system(folder.join("data")).unwrap();
    Migrator::open(platform, Arc::new(OsV1Files)).unwrap()
}

#[test]
fn a_link_leads_to_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(folder.path()).unwrap();
    let (file, link) = (root.join("real.jsonl"), root.join("link.jsonl"));
    std::fs::write(&file, sample("s")).unwrap();
    symlink("real.jsonl", &link).unwrap();
    let migrator = on_real_disk(&root);
    assert_eq!(migrate(&migrator, link.to_str().unwrap()).plan.address, file.to_str().unwrap());
    assert_eq!(std::fs::read(&file).unwrap(), sample("s").as_bytes());
}

#[test]
fn what_is_no_regular_file_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let sources = folder.path().join("v1");
    std::fs::create_dir(&sources).unwrap();
    std::fs::write(sources.join("a.jsonl"), sample("s")).unwrap();
    symlink("/dev/zero", sources.join("endless.jsonl")).unwrap();
    let migrator = on_real_disk(folder.path());
    let results = migrator.migrate_all(sources.to_str().unwrap(), &mut |_, _| {}, &mut |_| {});
    let results = results.unwrap();
    assert!(results[0].summary.is_some(), "{results:?}");
    assert!(results[1].skipped, "{results:?}");
}

/// V1 files of which one folder may not be looked into.
#[derive(Debug)]
struct OneClosed(DiskFiles);

impl V1Files for OneClosed {
    fn locate(&self, address: &str) -> Result<V1File> {
        self.0.locate(address)
    }

    fn list(&self, address: &str) -> Result<Vec<(String, bool)>> {
        if address == "v1/closed" {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied).into());
        }
        self.0.list(address)
    }
}

#[test]
fn a_folder_that_is_closed_stops_no_other_and_is_named() {
    let disk = SimDisk::new();
    for name in ["v1/a.jsonl", "v1/closed/b.jsonl", "v1/open/c.jsonl"] {
        disk.plant(&path(name), sample(name).as_bytes()).unwrap();
    }
    let platform = platform(Arc::new(disk.clone()), 1);
    let sessions = SessionDirectory::open(platform.clone(), inline()).unwrap();
    let files = OneClosed(DiskFiles(Arc::new(disk)));
    let migrator = Migrator::over(sessions, platform, Arc::new(files));
    let mut visited = 0;
    let results = migrator.migrate_all("v1", &mut |_, _| {}, &mut |_| visited += 1).unwrap();
    let done = results.iter().filter(|result| result.summary.is_some()).count();
    assert_eq!((done, visited), (2, 3));
    let closed = results.iter().find(|result| result.address == "v1/closed").unwrap();
    assert!(closed.error.is_some() && !closed.skipped);
}
