//! Paths that a person names. Inside a data directory no link is followed, but a path that a person gives may be a
//! link.
#![expect(clippy::disallowed_methods, reason = "only this crate may")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::if_there;

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Where it is, with every link on the way followed.
    pub path: PathBuf,
    /// The kind of the target.
    pub kind: NamedKind,
}

/// What a path can lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A pipe, a device or a socket. Opening one may block for ever.
    Other,
}

/// Resolves a path without opening its target; `None` if nothing is there.
pub fn follow(path: &Path) -> io::Result<Option<Named>> {
    let followed = fs::canonicalize(path).and_then(|path| Ok((fs::metadata(&path)?, path)));
    Ok(if_there(followed)?.map(|(meta, path)| {
        let kind = match meta.file_type() {
            kind if kind.is_file() => NamedKind::File,
            kind if kind.is_dir() => NamedKind::Folder,
            _ => NamedKind::Other,
        };
        Named { path, kind }
    }))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_and_only_regular_files_are_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let (file, link) = (root.join("file"), root.join("link"));
        fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        let named = |kind| Some(Named { path: file.clone(), kind });
        assert_eq!(follow(&link).unwrap(), named(NamedKind::File));
        assert_eq!(follow(&root).unwrap().unwrap().kind, NamedKind::Folder);
        assert_eq!(follow(Path::new("/dev/null")).unwrap().unwrap().kind, NamedKind::Other);
        fs::remove_file(&file).unwrap();
        assert_eq!(follow(&link).unwrap(), None);
    }
}
