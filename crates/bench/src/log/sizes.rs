//! How much room sessions take: bytes beside the V1 file of the same entries, and inodes.

use std::fs;
use std::path::Path;

use super::bough::{Bough, Carries};
use crate::entries::Entries;
use crate::measure::as_f64;
use crate::peers::{JsonlRewrite, Peer, Syncing};
use crate::report::Row;
use crate::{Options, Outcome};

/// Entries of the session that is weighed: several segments, indexed and checkpointed.
const ENTRIES: usize = 100_000;

/// Entries appended at a time.
const BATCH: usize = 1000;

/// Entries of a tiny session.
const FEW: [usize; 2] = [1, 20];

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (what, carries) in [("messages", Carries::Message), ("imported V1 lines", Carries::Line)] {
        eprintln!("sizes: {ENTRIES} {what}");
        rows.extend(weigh(&options.folder, what, carries)?);
    }
    for count in FEW {
        rows.push(inodes(&options.folder, count)?);
    }
    Ok(rows)
}

fn weigh(folder: &Path, what: &str, carries: Carries) -> Outcome<Vec<Row>> {
    let folder = tempfile::tempdir_in(folder)?;
    let jsonl = JsonlRewrite::new(folder.path().join("jsonl"), Syncing::Never)?;
    jsonl.writer(0)?.append(Entries::of_session(0).take(ENTRIES))?;
    let v1 = fs::metadata(jsonl.path(0))?.len();
    let data = folder.path().join("bough");
    let bough = Bough::carrying(&data, Syncing::Never, carries)?;
    fill(&bough)?;
    bough.finish()?;
    let sessions = data.join("sessions");
    let segments = bytes_below(&sessions, &|path| path.ends_with(".seg"))?;
    let indexed =
        bytes_below(&sessions, &|path| path.ends_with(".seg") || path.contains("/index/"))?;
    let all = bytes_below(&sessions, &|_| true)?;
    let row = |name: String, bytes: u64| -> Outcome<Row> {
        let row = Row::new(name, "bytes", as_f64(usize::try_from(bytes)?));
        Ok(row.beside("v1_jsonl", as_f64(usize::try_from(v1)?)))
    };
    Ok(vec![
        row(format!("segments of {ENTRIES} {what}"), segments)?,
        row(format!("segments with index of {ENTRIES} {what}"), indexed)?,
        row(format!("whole container of {ENTRIES} {what}"), all)?,
    ])
}

fn fill(bough: &Bough) -> Outcome<()> {
    let mut entries = Entries::of_session(0);
    let mut writer = bough.writer(0)?;
    for _ in 0..ENTRIES / BATCH {
        writer.append(entries.take(BATCH))?;
    }
    Ok(())
}

/// Files and folders that one idle tiny session adds; what its shard shares is not its own.
fn inodes(folder: &Path, count: usize) -> Outcome<Row> {
    let folder = tempfile::tempdir_in(folder)?;
    let data = folder.path().join("bough");
    let bough = Bough::new(data.clone(), Syncing::Never)?;
    let mut entries = Entries::of_session(0);
    let mut writer = bough.writer(0)?;
    for _ in 0..count {
        writer.append(entries.take(1))?;
    }
    drop(writer);
    bough.finish()?;
    let mut found = 0;
    for shard in fs::read_dir(data.join("sessions"))? {
        for container in fs::read_dir(shard?.path())? {
            let container = container?;
            if container.file_type()?.is_dir() {
                found += 1 + names_below(&container.path())?;
            }
        }
    }
    let name = format!("inodes of an idle session, {count} appended");
    Ok(Row::new(name, "inodes", as_f64(found)))
}

fn bytes_below(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            bytes += bytes_below(&path, wanted)?;
        } else if wanted(&path.to_string_lossy()) {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}

fn names_below(folder: &Path) -> Outcome<usize> {
    let mut names = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        names += 1;
        if entry.file_type()?.is_dir() {
            names += names_below(&entry.path())?;
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bytes_are_counted_at_every_depth() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/index")).unwrap();
        fs::write(folder.path().join("a/x.seg"), "12345").unwrap();
        fs::write(folder.path().join("a/index/rows"), "123").unwrap();
        assert_eq!(names_below(folder.path()).unwrap(), 4);
        let bytes = |wanted: &dyn Fn(&str) -> bool| bytes_below(folder.path(), wanted).unwrap();
        assert_eq!(bytes(&|path| path.ends_with(".seg")), 5);
        assert_eq!(bytes(&|_| true), 8);
    }
}
