//! Test stages in other languages, one folder each under `tests/external/`.
//!
//! A folder becomes a stage by holding a `stage.json`:
//!
//! ```json
//! {"about": "what it proves", "runtime": "python", "needs_bough": true,
//!  "run": ["python", "-m", "pytest", "-q"]}
//! ```
//!
//! `runtime` says what is prepared before `run`: `python` makes a virtual environment with the folder's
//! `requirements.txt`, `node` installs its `package.json`, `none` nothing. With `needs_bough` the
//! program is built first and its path is in the environment as `BOUGH`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::counts::{self, Counts};
use crate::shell;

const FOLDER: &str = "tests/external";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    about: String,
    runtime: Runtime,
    #[serde(default)]
    needs_bough: bool,
    run: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Runtime {
    Python,
    Node,
    None,
}

/// One folder that describes itself as a stage.
#[derive(Debug)]
pub(crate) struct External {
    pub(crate) name: String,
    folder: PathBuf,
    /// Or why the description cannot be used: a broken stage must fail, not vanish.
    description: Result<Description, String>,
}

impl External {
    pub(crate) fn about(&self) -> &str {
        match &self.description {
            Ok(description) => &description.about,
            Err(problem) => problem,
        }
    }

    pub(crate) fn run(&self, root: &Path) -> Result<Counts, String> {
        let description = self.description.as_ref().map_err(Clone::clone)?;
        let (program, arguments) =
            description.run.split_first().ok_or("stage.json: run is empty")?;
        let target = target_directory(root)?;
        let path = self.prepare(description.runtime, &target)?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder);
        command.env("PATH", path);
        if description.needs_bough {
            command.env("BOUGH", build_bough(root, &target)?);
        }
        let ran = shell::run(&mut command)?;
        Ok(counts::of_run(ran.success, &ran.output))
    }

    /// Installs what the runtime needs; the search path to run with.
    fn prepare(&self, runtime: Runtime, target: &Path) -> Result<OsString, String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        match runtime {
            Runtime::None => Ok(path),
            Runtime::Python => {
                let environment = target.join("xtask").join(format!("{}-venv", self.name));
                self.prepare_python(&environment)?;
                prepended(&environment.join("bin"), &path)
            }
            Runtime::Node => {
                self.prepare_node()?;
                prepended(&self.folder.join("node_modules/.bin"), &path)
            }
        }
    }

    fn prepare_python(&self, environment: &Path) -> Result<(), String> {
        let requirements = self.folder.join("requirements.txt");
        let wanted = fs::read_to_string(&requirements).map_err(|error| {
            format!("{} is needed by a python stage: {error}", requirements.display())
        })?;
        let installed = environment.join("installed.txt");
        if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
            return Ok(());
        }
        make_virtual_environment(environment)?;
        let pip = environment.join("bin/pip");
        let mut install = Command::new(pip);
        install.args(["install", "--quiet", "--disable-pip-version-check", "-r"]);
        succeed(install.arg(requirements))?;
        fs::write(&installed, wanted).map_err(|error| error.to_string())
    }

    fn prepare_node(&self) -> Result<(), String> {
        let locked = self.folder.join("package-lock.json").exists();
        let mut install = Command::new("npm");
        install.arg(if locked { "ci" } else { "install" });
        install.args(["--no-audit", "--no-fund", "--loglevel=error"]);
        succeed(install.current_dir(&self.folder))
    }
}

/// The stages that folders describe, sorted by name.
pub(crate) fn find(root: &Path) -> Vec<External> {
    let Ok(folders) = fs::read_dir(root.join(FOLDER)) else {
        return Vec::new();
    };
    let mut found: Vec<External> = folders
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join("stage.json").exists())
        .map(|entry| External {
            name: entry.file_name().to_string_lossy().into_owned(),
            description: describe(&entry.path().join("stage.json")),
            folder: entry.path(),
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn describe(file: &Path) -> Result<Description, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
}

/// Debian ships Python without `venv`; it comes as a package of its own.
fn make_virtual_environment(environment: &Path) -> Result<(), String> {
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(environment);
    if succeed(&mut make).is_ok() {
        return Ok(());
    }
    install_packages(&["python3-venv"])?;
    succeed(&mut make)
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

fn build_bough(root: &Path, target: &Path) -> Result<PathBuf, String> {
    succeed(shell::cargo(root).args(["build", "--quiet", "--package", "bough"]))?;
    Ok(target.join("debug/bough"))
}

fn target_directory(root: &Path) -> Result<PathBuf, String> {
    #[derive(Deserialize)]
    struct Metadata {
        target_directory: PathBuf,
    }
    let mut command = shell::cargo(root);
    command.args(["metadata", "--format-version", "1", "--no-deps"]);
    let text = shell::answer(&mut command).ok_or("cargo metadata failed")?;
    let metadata: Metadata = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    Ok(metadata.target_directory)
}

fn succeed(command: &mut Command) -> Result<(), String> {
    if shell::run(command)?.success {
        Ok(())
    } else {
        Err(format!("{} failed", shell::describe(command)))
    }
}

fn prepended(first: &Path, path: &OsString) -> Result<OsString, String> {
    let all = std::iter::once(first.to_owned()).chain(std::env::split_paths(path));
    std::env::join_paths(all).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(name: &str, description: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(FOLDER).join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("stage.json"), description).unwrap();
        root
    }

    #[test]
    fn a_folder_that_describes_itself_is_a_stage() {
        let root = folder_with(
            "greet",
            r#"{"about": "says hello", "runtime": "none", "run": ["echo", "hello"]}"#,
        );
        let found = find(root.path());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].about()), ("greet", "says hello"));
    }

    #[test]
    fn a_broken_description_fails_and_does_not_vanish() {
        let root = folder_with("broken", r#"{"about": "x", "rutime": "none"}"#);
        let found = find(root.path());
        let problem = found[0].run(root.path()).unwrap_err();
        assert!(problem.contains("stage.json"), "{problem}");
    }

    #[test]
    fn without_the_folder_there_are_no_stages() {
        assert!(find(tempfile::tempdir().unwrap().path()).is_empty());
    }
}
