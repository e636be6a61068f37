//! The one program that every package of a target carries: built so that it runs on old systems, and stripped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::steps::{self, Place};

/// The oldest glibc that packages are built for: that of manylinux2014, from the year 2012.
const GLIBC: Version = Version { major: 2, minor: 17 };

/// A version of glibc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) major: u32,
    pub(super) minor: u32,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What a program asks of the system that runs it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// The newest version of glibc that one of its symbols has; `None` for a program without glibc.
    pub(super) glibc: Option<Version>,
    /// Its shared libraries.
    pub(super) libraries: Vec<String>,
}

/// The program for a target, stripped, in the folder of packages: the one that is handed in, or a new one.
pub(super) fn prepare(place: &Place<'_>, given: Option<&Path>) -> Result<PathBuf, String> {
    let built = match given {
        Some(program) => program.to_owned(),
        None => build(place)?,
    };
    let folder = steps::empty_folder(&place.work.join("program"))?;
    let program = folder.join(place.target.program());
    fs::copy(&built, &program)
        .map_err(|error| format!("{} cannot be copied: {error}", built.display()))?;
    if place.target.is_linux() && has_symbols(&program)? {
        steps::run(Command::new("strip").arg(&program))?;
    }
    Ok(program)
}

/// Builds with the profile for packages. On Linux the linker and the C compiler are zig's, which know every version of glibc.
fn build(place: &Place<'_>) -> Result<PathBuf, String> {
    let triple = place.target.triple;
    let mut command;
    if place.target.is_linux() {
        let bin = place.tools()?.join("bin");
        command = Command::new(bin.join("cargo-zigbuild"));
        command.current_dir(place.root).arg("zigbuild").arg("--target");
        let version = if place.target.uses_glibc() { format!(".{GLIBC}") } else { String::new() };
        command.arg(format!("{triple}{version}"));
        command.env("PATH", steps::path_with(&bin)?);
    } else {
        command = crate::shell::cargo(place.root);
        command.args(["build", "--target", triple]);
    }
    command.args(["--locked", "--package", "bough", "--profile", place.profile]);
    steps::run(&mut command)?;
    // Cargo's oldest profile has a folder of another name.
    let profile = if place.profile == "dev" { "debug" } else { place.profile };
    let folder = crate::shell::target_dir(place.root).join(triple).join(profile);
    Ok(folder.join(place.target.program()))
}

fn has_symbols(program: &Path) -> Result<bool, String> {
    let sections = steps::answer(Command::new("readelf").arg("--sections").arg("-W").arg(program))?;
    Ok(sections.contains(" .symtab "))
}

/// What a program for Linux needs.
pub(super) fn needs(program: &Path) -> Result<Needs, String> {
    let mut command = Command::new("readelf");
    command.args(["--dynamic", "--version-info", "-W"]).arg(program);
    Ok(read_needs(&steps::answer(&mut command)?))
}

fn read_needs(text: &str) -> Needs {
    let glibc = text.split("GLIBC_").skip(1).filter_map(read_version).max();
    let library = |line: &str| {
        let (_, rest) = line.split_once("Shared library: [")?;
        Some(rest.split(']').next()?.to_owned())
    };
    Needs { glibc, libraries: text.lines().filter_map(library).collect() }
}

/// The version at the start of a text, without a third number.
fn read_version(text: &str) -> Option<Version> {
    let end = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
    let mut numbers = text.get(..end)?.split('.').map(str::parse);
    Some(Version { major: numbers.next()?.ok()?, minor: numbers.next()?.ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_symbol_decides() {
        let needs = read_needs(
            " 0x01 (NEEDED)  Shared library: [libc.so.6]\n 0x01 (NEEDED)  Shared library: [libm.so.6]\n\
             0x0010:   Name: GLIBC_2.2.5  Flags: none\n 0x0020:   Name: GLIBC_2.17  Flags: none\n\
             0x0030:   Name: GLIBC_2.9  Flags: none\n 0x0030:   Name: GLIBC_PRIVATE\n",
        );
        assert_eq!(needs.glibc, Some(Version { major: 2, minor: 17 }));
        assert_eq!(needs.libraries, ["libc.so.6", "libm.so.6"]);
    }

    #[test]
    fn a_static_program_needs_nothing() {
        let needs = read_needs("There is no dynamic section in this file.\n");
        assert_eq!(needs, Needs { glibc: None, libraries: Vec::new() });
    }
}
