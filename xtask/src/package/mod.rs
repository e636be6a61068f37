//! `cargo xtask package`: one program, in every form in which it is handed out.
//!
//! The program is built once for a target and stripped; every package carries the same bytes. Packages are put into
//! `packages` in the build directory.

mod archive;
mod debian;
mod image;
mod npm;
mod program;
mod steps;
mod targets;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::json;

pub(crate) use targets::TARGETS;

use crate::args::PackageOptions;
use crate::shell;
use steps::Place;
use targets::Target;

/// A form of package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Archive,
    Wheel,
    Npm,
    Debian,
    Image,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Archive, Self::Wheel, Self::Npm, Self::Debian, Self::Image];

    const fn name(self) -> &'static str {
        match self {
            Self::Archive => "archive",
            Self::Wheel => "wheel",
            Self::Npm => "npm",
            Self::Debian => "deb",
            Self::Image => "image",
        }
    }

    /// The forms that a word stands for.
    pub(crate) fn named(word: &str) -> Option<Vec<Self>> {
        if word == "all" {
            return Some(Self::ALL.to_vec());
        }
        Some(vec![Self::ALL.into_iter().find(|kind| kind.name() == word)?])
    }

    fn make(self, place: &Place<'_>, program: &Path) -> Result<Vec<PathBuf>, String> {
        match self {
            Self::Archive => archive::make(place, program),
            Self::Wheel => wheel::make(place, program),
            Self::Npm => npm::make(place, program),
            Self::Debian => debian::make(place, program),
            Self::Image => image::make(place, program),
        }
    }
}

/// Makes the packages and says where they are.
pub(crate) fn run(root: &Path, options: &PackageOptions) -> ExitCode {
    match make(root, options) {
        Ok(files) if options.json => {
            println!("{}", json!({ "packages": files }));
            ExitCode::SUCCESS
        }
        Ok(files) => {
            files.iter().for_each(|file| println!("{}", file.display()));
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn make(root: &Path, options: &PackageOptions) -> Result<Vec<PathBuf>, String> {
    let host = host()?;
    let target = Target::find(options.target.as_deref().unwrap_or(&host))?;
    let packages = shell::target_dir(root).join("packages");
    let place = Place {
        root,
        target,
        profile: options.profile.as_deref().unwrap_or("dist"),
        version: version(root)?,
        out: packages.clone(),
        work: packages.join("work").join(target.triple),
    };
    let made = std::fs::create_dir_all(&place.out);
    made.map_err(|error| format!("{} cannot be made: {error}", place.out.display()))?;
    let program = program::prepare(&place, options.program.as_deref())?;
    let mut files = Vec::new();
    for kind in &options.kinds {
        files.extend(kind.make(&place, &program)?);
    }
    Ok(files)
}

fn host() -> Result<String, String> {
    let about = steps::answer(Command::new("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not say what it compiles for".to_owned())
}

/// The version of the workspace. The clients are published with the program, so theirs has to be the same.
fn version(root: &Path) -> Result<String, String> {
    let version = version_in(&root.join("Cargo.toml"), "version = \"")?;
    let python = version_in(&root.join("sdk/python/pyproject.toml"), "version = \"")?;
    let typescript = version_in(&root.join("sdk/typescript/package.json"), "\"version\": \"")?;
    if version == python && version == typescript {
        return Ok(version);
    }
    Err(format!(
        "the versions differ: Cargo.toml has {version}, sdk/python {python}, sdk/typescript {typescript}"
    ))
}

fn version_in(file: &Path, before: &str) -> Result<String, String> {
    let text = steps::read(file)?;
    let found = text.lines().find_map(|line| line.trim().strip_prefix(before));
    let found = found.and_then(|rest| rest.split('"').next()).map(str::to_owned);
    found.ok_or_else(|| format!("{} has no version", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names() {
        assert_eq!(Kind::named("deb"), Some(vec![Kind::Debian]));
        assert_eq!(Kind::named("all").unwrap().len(), Kind::ALL.len());
        assert_eq!(Kind::named("rpm"), None);
    }

    #[test]
    fn program_and_clients_have_one_version() {
        assert!(version(&crate::workspace_root()).is_ok());
        let root = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| steps::write(&root.path().join(file), text).unwrap();
        put("Cargo.toml", "version = \"1.0.0\"");
        put("sdk/python/pyproject.toml", "version = \"1.0.0\"");
        put("sdk/typescript/package.json", "  \"version\": \"0.9.0\",");
        let problem = version(root.path()).unwrap_err();
        assert!(problem.contains("sdk/typescript 0.9.0"), "{problem}");
    }
}
