//! The wheel `boughdb`: the Python client, with the program among its scripts.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::program;
use super::steps::{self, Place};

pub(super) fn make(place: &Place<'_>, built: &Path) -> Result<Vec<PathBuf>, String> {
    let tag = platform_tag(place, built)?;
    let folder = steps::empty_folder(&place.work.join("wheel"))?;
    let mut command = Command::new(place.tools()?.join("bin/python"));
    command.args(["-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    command.args(["--no-build-isolation", "--wheel-dir"]).arg(&folder);
    command.arg(place.source("sdk/python"));
    command.env("BOUGH_WHEEL_PROGRAM", built).env("BOUGH_WHEEL_PLATFORM", &tag);
    steps::run(&mut command)?;
    let name = format!("boughdb-{}-py3-none-{tag}.whl", place.version);
    Ok(vec![place.deliver(&folder.join(name))?])
}

/// Which systems pip offers the wheel to. The symbols of the program decide which glibc that is.
fn platform_tag(place: &Place<'_>, built: &Path) -> Result<String, String> {
    if !place.target.uses_glibc() {
        return Ok(place.target.wheel.to_owned());
    }
    let needed = program::needs(built)?.glibc;
    let version = needed.ok_or_else(|| format!("{} is not linked with glibc", built.display()))?;
    Ok(format!("manylinux_{}_{}_{}", version.major, version.minor, place.target.wheel))
}
