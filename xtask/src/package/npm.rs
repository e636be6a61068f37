//! The npm package `boughdb`: the TypeScript client with a launcher, and beside it one package for each platform with the program.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::steps::{self, Place};
use super::targets::{TARGETS, Target};

const SCOPE: &str = "@boughdb";

pub(super) fn make(place: &Place<'_>, program: &Path) -> Result<Vec<PathBuf>, String> {
    Ok(vec![platform_package(place, program)?, main_package(place)?])
}

/// The program for one platform. npm installs it only where `os`, `cpu` and `libc` are the machine's.
fn platform_package(place: &Place<'_>, program: &Path) -> Result<PathBuf, String> {
    let folder = steps::empty_folder(&place.work.join("npm-platform"))?;
    steps::copy(program, &folder.join(place.target.program()))?;
    licences(place, &folder)?;
    let about = format!("The program of the package boughdb, for {}.\n", place.target.triple);
    steps::write(&folder.join("README.md"), &about)?;
    let manifest = platform_manifest(place.target, &place.version);
    steps::write(&folder.join("package.json"), &format!("{manifest:#}\n"))?;
    pack(place, &folder)
}

fn platform_manifest(target: &Target, version: &str) -> Value {
    let (os, cpu) = os_and_cpu(target);
    let mut manifest = json!({
        "name": format!("{SCOPE}/{}", target.npm),
        "version": version,
        "description": format!("The program of the package boughdb, for {}.", target.triple),
        "license": "MIT OR Apache-2.0",
        "os": [os],
        "cpu": [cpu],
        "files": [target.program(), "LICENSE-APACHE", "LICENSE-MIT"],
        "preferUnplugged": true,
    });
    if let (Some(libc), Some(fields)) = (target.npm_libc, manifest.as_object_mut()) {
        fields.insert("libc".to_owned(), json!([libc]));
    }
    manifest
}

fn os_and_cpu(target: &Target) -> (&'static str, &'static str) {
    let mut words = target.npm.split('-');
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}

/// The client as its own folder describes it, with the platform packages as what npm may leave out.
fn main_package(place: &Place<'_>) -> Result<PathBuf, String> {
    let client = place.source("sdk/typescript");
    if !client.join("node_modules/typescript").exists() {
        let mut install = Command::new("npm");
        install.args(["install", "--no-save", "--ignore-scripts", "--omit=optional"]);
        install.args(["--no-audit", "--no-fund", "--loglevel=error"]);
        steps::run(install.current_dir(&client))?;
    }
    steps::run(Command::new("npm").args(["run", "--silent", "build"]).current_dir(&client))?;
    let folder = steps::empty_folder(&place.work.join("npm-main"))?;
    steps::copy(&client.join("README.md"), &folder.join("README.md"))?;
    licences(place, &folder)?;
    steps::copy(&client.join("package.json"), &folder.join("package.json"))?;
    publish_manifest(&folder, &place.version)?;
    let copied = Command::new("cp").args(["-R", "dist"]).arg(&folder).current_dir(&client).status();
    if !copied.is_ok_and(|status| status.success()) {
        return Err("the built client cannot be copied".to_owned());
    }
    pack(place, &folder)
}

/// Makes the manifest of the client that of the package. npm edits it, because the order of its members means something: of
/// `exports` and `imports` the first that fits is taken.
fn publish_manifest(folder: &Path, version: &str) -> Result<(), String> {
    let pkg = || {
        let mut command = Command::new("npm");
        command.arg("pkg").current_dir(folder);
        command
    };
    steps::run(pkg().args(["delete", "devDependencies", "scripts"]))?;
    steps::run(pkg().arg("set").args(platform_dependencies(version)))
}

/// The platform packages, as `npm pkg set` takes them.
fn platform_dependencies(version: &str) -> impl Iterator<Item = String> {
    TARGETS
        .iter()
        .map(move |target| format!("optionalDependencies[{SCOPE}/{}]={version}", target.npm))
}

fn licences(place: &Place<'_>, folder: &Path) -> Result<(), String> {
    for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
        steps::copy(&place.source(file), &folder.join(file))?;
    }
    Ok(())
}

fn pack(place: &Place<'_>, folder: &Path) -> Result<PathBuf, String> {
    let mut command = Command::new("npm");
    command.args(["pack", "--json", "--pack-destination"]).arg(&place.out).current_dir(folder);
    let answer = steps::answer(&mut command)?;
    let packed: Value =
        serde_json::from_str(&answer).map_err(|error| format!("npm pack: {error}"))?;
    let name = packed.pointer("/0/filename").and_then(Value::as_str);
    Ok(place.out.join(name.ok_or("npm pack did not say what it made")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_package_is_for_its_platform_only() {
        let musl = Target::find("x86_64-unknown-linux-musl").unwrap();
        let manifest = platform_manifest(musl, "1.2.3");
        assert_eq!(manifest["name"], "@boughdb/linux-x64-musl");
        assert_eq!((&manifest["os"], &manifest["cpu"]), (&json!(["linux"]), &json!(["x64"])));
        assert_eq!(manifest["libc"], json!(["musl"]));
        let windows = Target::find("i686-pc-windows-msvc").unwrap();
        let manifest = platform_manifest(windows, "1.2.3");
        assert_eq!((&manifest["os"], &manifest["cpu"]), (&json!(["win32"]), &json!(["ia32"])));
        assert_eq!(manifest["files"][0], "bough.exe");
        assert!(manifest.get("libc").is_none());
    }

    #[test]
    fn the_main_package_names_every_platform_package() {
        let names: Vec<String> = platform_dependencies("1.2.3").collect();
        assert_eq!(names.len(), TARGETS.len());
        assert!(names.contains(&"optionalDependencies[@boughdb/linux-x64]=1.2.3".to_owned()));
    }
}
