//! The Debian package: the program, a service of systemd with a user of its own, and its configuration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::archive;
use super::program::{self, Needs};
use super::steps::{self, Place};

/// Where each file of `packaging/debian` goes.
const FILES: [(&str, &str); 4] = [
    ("bough.service", "usr/lib/systemd/system/bough.service"),
    ("sysusers.conf", "usr/lib/sysusers.d/bough.conf"),
    ("config.yaml", "etc/bough/config.yaml"),
    ("copyright", "usr/share/doc/bough/copyright"),
];
/// What dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

pub(super) fn make(place: &Place<'_>, built: &Path) -> Result<Vec<PathBuf>, String> {
    let Some(architecture) = place.target.debian else {
        return Err(format!("Debian has no system like {}", place.target.triple));
    };
    let folder = steps::empty_folder(&place.work.join("debian"))?;
    steps::copy(built, &folder.join("usr/bin/bough"))?;
    for (from, to) in FILES {
        steps::copy(&source(place, from), &folder.join(to))?;
    }
    let doc = folder.join("usr/share/doc/bough");
    steps::copy(&place.source("README.md"), &doc.join("README.md"))?;
    changelog(place, &doc)?;
    for (file, script) in archive::completions(built) {
        steps::write(&folder.join(completion_path(file)), &script)?;
    }
    let control = steps::read(&source(place, "control"))?
        .replace("{version}", &place.version)
        .replace("{architecture}", architecture)
        .replace("{installed_kib}", &kib(built)?.to_string())
        .replace("{depends}", &depends(&program::needs(built)?));
    steps::write(&folder.join("DEBIAN/control"), &control)?;
    steps::write(&folder.join("DEBIAN/conffiles"), "/etc/bough/config.yaml\n")?;
    for script in SCRIPTS {
        steps::copy(&source(place, script), &folder.join("DEBIAN").join(script))?;
    }
    permissions(&folder)?;
    let package = place.out.join(format!("bough_{}_{architecture}.deb", place.version));
    let mut build = Command::new("dpkg-deb");
    build.args(["--build", "--root-owner-group", "-Zxz", "-z1"]).arg(&folder).arg(&package);
    steps::run(&mut build)?;
    Ok(vec![package])
}

fn source(place: &Place<'_>, name: &str) -> PathBuf {
    place.source("packaging/debian").join(name)
}

fn completion_path(file: &str) -> String {
    match file {
        "_bough" => "usr/share/zsh/vendor-completions/_bough".to_owned(),
        "bough.fish" => "usr/share/fish/vendor_completions.d/bough.fish".to_owned(),
        _ => "usr/share/bash-completion/completions/bough".to_owned(),
    }
}

/// Debian keeps the changes of a project compressed.
fn changelog(place: &Place<'_>, doc: &Path) -> Result<(), String> {
    let file = doc.join("changelog");
    steps::copy(&place.source("CHANGELOG.md"), &file)?;
    steps::run(Command::new("gzip").args(["-9", "--no-name"]).arg(file))
}

fn kib(file: &Path) -> Result<u64, String> {
    let found = fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(found.len().div_ceil(1024))
}

/// The packages whose libraries the program needs.
fn depends(needs: &Needs) -> String {
    let glibc = needs.glibc.map(|version| format!("libc6 (>= {version})"));
    let has_unwinder = needs.libraries.iter().any(|name| name == "libgcc_s.so.1");
    let unwinder = has_unwinder.then(|| "libgcc-s1".to_owned());
    glibc.into_iter().chain(unwinder).collect::<Vec<_>>().join(", ")
}

/// Permissions as they are on every machine, whatever those of the sources are.
fn permissions(folder: &Path) -> Result<(), String> {
    let words = "-type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +";
    steps::run(Command::new("find").arg(folder).args(words.split(' ')))?;
    let scripts = SCRIPTS.iter().map(|script| folder.join("DEBIAN").join(script));
    steps::run(Command::new("chmod").arg("755").arg(folder.join("usr/bin/bough")).args(scripts))
}

#[cfg(test)]
mod tests {
    use super::super::program::Version;
    use super::*;

    #[test]
    fn the_package_depends_on_what_the_program_needs() {
        let glibc = Some(Version { major: 2, minor: 17 });
        let alone = Needs { glibc, libraries: vec!["libc.so.6".to_owned()] };
        assert_eq!(depends(&alone), "libc6 (>= 2.17)");
        let both = Needs { glibc, libraries: vec!["libgcc_s.so.1".to_owned()] };
        assert_eq!(depends(&both), "libc6 (>= 2.17), libgcc-s1");
    }
}
