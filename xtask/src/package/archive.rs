//! The program with its licences, for whoever installs by hand: an archive, and its checksum.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::steps::{self, Place};

const SHELLS: [(&str, &str); 3] =
    [("bash", "bough.bash"), ("zsh", "_bough"), ("fish", "bough.fish")];

pub(super) fn make(place: &Place<'_>, program: &Path) -> Result<Vec<PathBuf>, String> {
    let name = format!("bough-{}-{}", place.version, place.target.triple);
    let folder = steps::empty_folder(&place.work.join("archive"))?.join(&name);
    steps::copy(program, &folder.join(place.target.program()))?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        steps::copy(&place.source(file), &folder.join(file))?;
    }
    for (file, script) in completions(program) {
        steps::write(&folder.join("completions").join(file), &script)?;
    }
    let kind = if place.target.is_windows() { "zip" } else { "tar.gz" };
    let archive = place.out.join(format!("{name}.{kind}"));
    let mut pack = Command::new("python3");
    pack.arg(place.source("packaging/archive.py")).arg(&folder).arg(&archive);
    steps::run(&mut pack)?;
    Ok(vec![archive])
}

/// The scripts that complete commands in a shell; none where the program is for another system than this one.
pub(super) fn completions(program: &Path) -> Vec<(&'static str, String)> {
    let script = |shell| steps::answer(Command::new(program).args(["completions", shell])).ok();
    SHELLS.into_iter().filter_map(|(shell, file)| Some((file, script(shell)?))).collect()
}
