//! Test stages in other languages: every folder of `tests/` with a `run.sh` is one.
//!
//! The script installs what it needs from the public registries into its own folder, builds what it
//! drives, and ends with status 0 when all is well. The first comment after its first line says what it
//! proves. Summaries of the usual test runners in its output are counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::counts::{self, Counts};
use crate::shell;

const FOLDER: &str = "tests";
const SCRIPT: &str = "run.sh";

/// One folder with a script.
#[derive(Debug)]
pub(crate) struct External {
    pub(crate) name: String,
    pub(crate) about: String,
    script: PathBuf,
}

impl External {
    /// Runs the script, on this program where one is built already.
    pub(crate) fn run(&self, program: Option<&Path>) -> Result<Counts, String> {
        let mut command = Command::new("sh");
        command.arg(&self.script);
        if let Some(program) = program {
            command.env("BOUGH", program);
        }
        let ran = shell::run(&mut command)?;
        Ok(counts::of_run(ran.success, &ran.output))
    }
}

/// The stages that folders describe, sorted by name.
pub(crate) fn find(root: &Path) -> Vec<External> {
    let Ok(folders) = fs::read_dir(root.join(FOLDER)) else {
        return Vec::new();
    };
    let mut found: Vec<External> = folders
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let script = entry.path().join(SCRIPT);
            let text = fs::read_to_string(&script).ok()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            Some(External { name, about: purpose(&text), script })
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// The first comment of a script after the line that names its shell.
fn purpose(script: &str) -> String {
    let comments = script.lines().skip(1).filter_map(|line| line.strip_prefix("# "));
    comments.map(str::to_owned).next().unwrap_or_default()
}

/// Installs system packages, where we are allowed to.
pub(crate) fn install_packages(names: &[&str]) -> Result<(), String> {
    let is_root = shell::answer(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0");
    let apt = || {
        let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
        if !is_root {
            command.args(["-n", "apt-get"]);
        }
        command
    };
    succeed(apt().args(["update", "-qq"]))?;
    succeed(apt().args(["install", "-y", "-qq", "--no-install-recommends"]).args(names))
        .map_err(|problem| format!("{problem}; install {} by hand", names.join(", ")))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    if shell::run(command)?.success {
        Ok(())
    } else {
        Err(format!("{} failed", shell::describe(command)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(script: &str) -> (tempfile::TempDir, External) {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(FOLDER).join("greet");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(SCRIPT), script).unwrap();
        fs::create_dir_all(root.path().join(FOLDER).join("data")).unwrap();
        let mut found = find(root.path());
        assert_eq!(found.len(), 1);
        (root, found.remove(0))
    }

    #[test]
    fn a_folder_with_a_script_is_a_stage_and_its_tests_are_counted() {
        let (_root, stage) = stage("#!/bin/sh\n# Says hello.\necho '3 passed in 0.01s'\n");
        assert_eq!((stage.name.as_str(), stage.about.as_str()), ("greet", "Says hello."));
        assert_eq!(stage.run(None).unwrap(), Counts::of(3, 0));
    }

    #[test]
    fn a_program_that_is_built_already_is_handed_on() {
        let (_root, stage) = stage("#!/bin/sh\n# Asks.\ntest \"$BOUGH\" = /tmp/bough\n");
        assert_eq!(stage.run(Some(Path::new("/tmp/bough"))).unwrap(), Counts::ONE_PASSED);
    }

    #[test]
    fn a_script_that_fails_is_a_failure() {
        let (_root, stage) = stage("#!/bin/sh\nexit 1\n");
        assert_eq!(stage.run(None).unwrap(), Counts::ONE_FAILED);
    }

    #[test]
    fn without_the_folder_there_are_no_stages() {
        assert!(find(tempfile::tempdir().unwrap().path()).is_empty());
    }
}
