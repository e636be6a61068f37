//! The container image: from scratch, built by buildah, which needs no daemon.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::steps::{self, Place};

/// Where Debian and its relatives keep the certificate authorities.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Files of `packaging/container`, and where they go.
const FILES: [(&str, &str); 4] = [
    ("config.yaml", "etc/bough/config.yaml"),
    ("passwd", "etc/passwd"),
    ("group", "etc/group"),
    ("nsswitch.conf", "etc/nsswitch.conf"),
];

pub(super) fn make(place: &Place<'_>, program: &Path) -> Result<Vec<PathBuf>, String> {
    if !place.target.is_linux() {
        return Err(format!("an image runs Linux, not {}", place.target.triple));
    }
    let context = steps::empty_folder(&place.work.join("image"))?;
    let root = context.join("root");
    steps::copy(program, &root.join("usr/bin/bough"))?;
    for library in libraries(program)? {
        steps::copy(&library, &root.join(library.strip_prefix("/").unwrap_or(&library)))?;
    }
    for (from, to) in FILES {
        steps::copy(&place.source("packaging/container").join(from), &root.join(to))?;
    }
    steps::copy(Path::new(AUTHORITIES), &root.join("etc/ssl/certs/ca-certificates.crt"))?;
    // Folders without files: the volume, and one for temporary files.
    for empty in ["data", "root/tmp"] {
        steps::empty_folder(&context.join(empty))?;
    }
    build(place, &context)
}

/// The shared libraries of the program as the system finds them, with the loader; none for a static program.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, String> {
    if super::program::needs(program)?.glibc.is_none() {
        return Ok(Vec::new());
    }
    let listed = steps::answer(Command::new("ldd").arg(program))?;
    Ok(read_libraries(&listed))
}

fn read_libraries(listed: &str) -> Vec<PathBuf> {
    let path =
        |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    listed.lines().filter_map(path).collect()
}

/// Docker's format, because the other one has no place for a check. The storage is a folder of ours, which is removed.
fn build(place: &Place<'_>, context: &Path) -> Result<Vec<PathBuf>, String> {
    let storage = place.work.join("image-storage");
    let buildah = |name: &str| {
        let mut command = Command::new("buildah");
        command.arg("--root").arg(storage.join("root")).arg("--runroot").arg(storage.join("run"));
        command.args(["--storage-driver", "vfs", name]);
        command
    };
    let tag = format!("localhost/bough:{}", place.version);
    let mut build = buildah("build");
    build.args(["--format", "docker", "--isolation", "chroot", "--timestamp", "0", "--tag", &tag]);
    build.arg("--file").arg(place.source("packaging/container/Containerfile")).arg(context);
    steps::run(&mut build)?;
    let file = place.out.join(format!("bough-{}-image.tar", place.version));
    // It adds to an archive that is there already.
    if file.exists() {
        std::fs::remove_file(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    steps::run(buildah("push").arg(&tag).arg(format!("docker-archive:{}:{tag}", file.display())))?;
    steps::empty_folder(&storage)?;
    Ok(vec![file])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_the_loader_are_found_where_the_system_has_them() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                      \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let paths = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(read_libraries(listed), paths.map(PathBuf::from));
    }
}
