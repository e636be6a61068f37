//! Which processes have a file open for writing, as `/proc` shows it.
#![expect(clippy::disallowed_methods, reason = "only this crate may")]

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

pub(crate) fn has_other_writers(file: &fs::File) -> io::Result<bool> {
    let this = std::process::id();
    for entry in fs::read_dir("/proc")? {
        let process = entry?.path();
        let name = process.file_name().and_then(|name| name.to_str());
        let id = name.and_then(|name| name.parse::<u32>().ok());
        if id.is_some_and(|id| id != this) && writes(&process, file)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether one process has the file open for writing. A process that has ended, or of another user, has nothing open.
fn writes(process: &Path, file: &fs::File) -> io::Result<bool> {
    let wanted = file.metadata()?;
    let Ok(entries) = fs::read_dir(process.join("fdinfo")) else { return Ok(false) };
    let found = entries.flatten().any(|entry| {
        let facts = fs::read_to_string(entry.path()).unwrap_or_default();
        // A file of a server that does not answer is not asked for its number where the kernel tells it here.
        if !is_for_writing(&facts)
            || fact(&facts, "ino:").is_some_and(|ino| ino != wanted.ino().to_string())
        {
            return false;
        }
        let open = fs::metadata(process.join("fd").join(entry.file_name()));
        open.is_ok_and(|open| (open.dev(), open.ino()) == (wanted.dev(), wanted.ino()))
    });
    Ok(found)
}

fn fact<'a>(facts: &'a str, name: &str) -> Option<&'a str> {
    facts.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// The lowest two bits of the flags, which are octal: 0 is for reading.
fn is_for_writing(facts: &str) -> bool {
    let flags = fact(facts, "flags:").and_then(|flags| u32::from_str_radix(flags, 8).ok());
    flags.is_some_and(|flags| flags & 0b11 != 0)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process that has the file open until its input ends.
    fn holding(file: &Path, how: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec 3{how}\"$0\"; echo open; read -r line")]).arg(file);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = [0; 5];
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        child
    }

    #[test]
    fn a_process_that_may_write_is_seen_until_it_closes_the_file_also_after_it_lost_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let file = fs::File::create(&path).unwrap();
        assert!(!has_other_writers(&file).unwrap(), "this process does not count");
        let mut reader = holding(&path, "<");
        assert!(!has_other_writers(&file).unwrap(), "a reader does not count");
        let mut writer = holding(&path, ">>");
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another file").unwrap();
        assert!(has_other_writers(&file).unwrap());
        for child in [&mut writer, &mut reader] {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        assert!(!has_other_writers(&file).unwrap());
    }
}
