//! What the packages have in common: where they are made, and running the tools that make them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::targets::Target;
use crate::shell;

/// What is installed from PyPI, into the build directory: the compiler that knows every glibc, and the builder of wheels.
const TOOLS: [&str; 3] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.0", "hatchling==1.33.0"];

/// One run: for which target, and where.
pub(super) struct Place<'a> {
    pub(super) root: &'a Path,
    pub(super) target: &'static Target,
    pub(super) profile: &'a str,
    /// The version of every package.
    pub(super) version: String,
    /// Where packages are put.
    pub(super) out: PathBuf,
    /// For what lies between.
    pub(super) work: PathBuf,
}

impl Place<'_> {
    /// A virtual environment with the tools.
    pub(super) fn tools(&self) -> Result<PathBuf, String> {
        let folder = shell::target_dir(self.root).join("installed/package");
        let (python, list) = (folder.join("python"), folder.join("python.txt"));
        let wanted = TOOLS.join(" ");
        if fs::read_to_string(&list).is_ok_and(|installed| installed == wanted) {
            return Ok(python);
        }
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&python))?;
        let mut pip = Command::new(python.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        run(pip.args(TOOLS))?;
        write(&list, &wanted)?;
        Ok(python)
    }

    /// A file of the sources.
    pub(super) fn source(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Moves a package to where packages are put.
    pub(super) fn deliver(&self, file: &Path) -> Result<PathBuf, String> {
        let name = file.file_name().ok_or("a package without a name")?;
        let delivered = self.out.join(name);
        fs::rename(file, &delivered)
            .map_err(|error| format!("{} cannot be moved: {error}", file.display()))?;
        Ok(delivered)
    }
}

/// Runs a tool, which has to succeed.
pub(super) fn run(command: &mut Command) -> Result<(), String> {
    if shell::run(command)?.success {
        return Ok(());
    }
    Err(format!("{} failed", shell::describe(command)))
}

/// Runs a tool for what it prints.
pub(super) fn answer(command: &mut Command) -> Result<String, String> {
    shell::answer(command).ok_or_else(|| format!("{} failed", shell::describe(command)))
}

/// `PATH` with a folder before the others.
pub(super) fn path_with(folder: &Path) -> Result<OsString, String> {
    let old = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&old));
    std::env::join_paths(folders).map_err(|error| error.to_string())
}

/// A folder with nothing in it.
pub(super) fn empty_folder(folder: &Path) -> Result<PathBuf, String> {
    if folder.exists() {
        let removed = fs::remove_dir_all(folder);
        removed.map_err(|error| format!("{} cannot be removed: {error}", folder.display()))?;
    }
    let made = fs::create_dir_all(folder);
    made.map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    Ok(folder.to_owned())
}

/// Writes a text, making the folders above it.
pub(super) fn write(file: &Path, text: &str) -> Result<(), String> {
    make_parent(file)?;
    fs::write(file, text).map_err(|error| format!("{} cannot be written: {error}", file.display()))
}

/// Copies a file with its permissions, making the folders above the copy.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    make_parent(to)?;
    let copied = fs::copy(from, to);
    copied.map_err(|error| format!("{} cannot be copied: {error}", from.display()))?;
    Ok(())
}

pub(super) fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{} cannot be read: {error}", file.display()))
}

fn make_parent(file: &Path) -> Result<(), String> {
    let parent = file.parent().unwrap_or(file);
    fs::create_dir_all(parent)
        .map_err(|error| format!("{} cannot be made: {error}", parent.display()))
}
