//! The text files of the project, as they would be committed.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use super::rust_text;
use crate::shell;

/// One file with its text.
#[derive(Debug)]
pub(super) struct TextFile {
    /// From the root, names joined by `/`.
    pub(super) path: String,
    pub(super) text: String,
}

#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) files: Vec<TextFile>,
    /// The files that are not text, by their paths.
    others: Vec<String>,
}

impl Tree {
    /// Reads what git tracks and what it would track if it were added. Of files that are not text
    /// only the paths are kept; tracked files that are gone from the folder are left out.
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let mut command = Command::new("git");
        command.current_dir(root);
        command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let names = match shell::answer(&mut command) {
            Some(names) => names.split('\0').map(str::to_owned).collect(),
            None => walk(root)?,
        };
        let mut tree = Self::default();
        for path in names.into_iter().filter(|name| !name.is_empty()) {
            match fs::read_to_string(root.join(&path)) {
                Ok(text) => tree.files.push(TextFile { path, text }),
                Err(error) if error.kind() == ErrorKind::InvalidData => tree.others.push(path),
                Err(_) => {}
            }
        }
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        tree.files.dedup_by(|a, b| a.path == b.path);
        Ok(tree)
    }

    pub(super) fn get(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether a file is there, or a folder with something in it.
    pub(super) fn holds(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        let paths = self.files.iter().map(|file| &file.path).chain(&self.others);
        paths.into_iter().any(|held| held == path || held.starts_with(&folder))
    }

    /// The Rust files.
    pub(super) fn rust(&self) -> impl Iterator<Item = &TextFile> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }
}

impl TextFile {
    /// The crate's folder name (`log` for `crates/log/src/lib.rs`, `xtask` for its own).
    pub(super) fn crate_name(&self) -> Option<&str> {
        let mut names = self.path.split('/');
        match names.next()? {
            "crates" => names.next(),
            "xtask" => Some("xtask"),
            _ => None,
        }
    }

    /// Whether the whole file is there for tests only.
    pub(super) fn is_test(&self) -> bool {
        let mut folders = self.path.split('/').rev().skip(1);
        folders
            .any(|name| matches!(name, "tests" | "conformance" | "benches" | "examples" | "fuzz"))
            || self.path.ends_with("/tests.rs")
            || self.path.ends_with("/testing.rs")
            || self.path.ends_with("_tests.rs")
            || self.crate_name() == Some("testkit")
    }

    /// Data that tests read: other people's text, to which our rules do not apply.
    pub(super) fn is_sample(&self) -> bool {
        self.is_test() && !self.path.ends_with(".rs")
    }

    /// The code of a Rust file, line by line from one, without comments, without the content of strings
    /// and without its test modules.
    pub(super) fn code_lines(&self) -> Vec<(usize, String)> {
        let masked = rust_text::without_test_modules(&rust_text::masked(&self.text));
        (1..).zip(masked.lines().map(str::to_owned)).collect()
    }
}

/// For a copy of the sources that is not a git checkout.
fn walk(root: &Path) -> Result<Vec<String>, String> {
    const LEFT_OUT: [&str; 4] = ["target", ".git", "node_modules", ".venv"];
    let mut names = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder)).map_err(|error| error.to_string())?;
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if LEFT_OUT.contains(&name.as_str()) {
                continue;
            }
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else {
                names.push(path);
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
pub(super) fn planted(files: &[(&str, &str)]) -> Tree {
    Tree {
        files: files
            .iter()
            .map(|(path, text)| TextFile { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect(),
        others: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_text_is_held_by_its_path() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("picture.png"), [0x89, 0xff, 0xfe]).unwrap();
        let tree = Tree::read(root.path()).unwrap();
        assert!(tree.files.is_empty());
        assert!(tree.holds("picture.png") && !tree.holds("other.png"));
    }

    #[test]
    fn rooms_and_tests_are_told_from_paths() {
        let tree = planted(&[
            ("crates/log/src/lib.rs", ""),
            ("crates/log/src/segment/tests.rs", ""),
            ("crates/log/tests/data/sample.jsonl", ""),
            ("README.md", ""),
        ]);
        let facts: Vec<_> = tree
            .files
            .iter()
            .map(|file| (file.crate_name(), file.is_test(), file.is_sample()))
            .collect();
        assert_eq!(
            facts,
            [
                (Some("log"), false, false),
                (Some("log"), true, false),
                (Some("log"), true, true),
                (None, false, false)
            ]
        );
    }

    #[test]
    fn a_copy_without_git_is_walked() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/target")).unwrap();
        fs::write(root.path().join("a/target/x.rs"), "no").unwrap();
        fs::write(root.path().join("a/b.rs"), "yes").unwrap();
        assert_eq!(walk(root.path()).unwrap(), ["a/b.rs"]);
    }
}
