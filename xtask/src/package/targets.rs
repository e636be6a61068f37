//! The systems that the product is meant for, and what each package format calls them.

/// One system.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// As rustc calls it.
    pub(crate) triple: &'static str,
    /// The end of the platform package's name in npm, and the `os`, `cpu` and `libc` that npm compares with the machine.
    pub(super) npm: &'static str,
    pub(super) npm_libc: Option<&'static str>,
    /// The platform tag of the wheel; for glibc without its version, which the program decides.
    pub(super) wheel: &'static str,
    /// As Debian calls it; `None` where Debian has no such system.
    pub(super) debian: Option<&'static str>,
}

const fn target(triple: &'static str, npm: &'static str, wheel: &'static str) -> Target {
    Target { triple, npm, npm_libc: None, wheel, debian: None }
}

const fn glibc(
    triple: &'static str,
    npm: &'static str,
    wheel: &'static str,
    debian: &'static str,
) -> Target {
    Target { triple, npm, npm_libc: Some("glibc"), wheel, debian: Some(debian) }
}

/// Every system.
pub(crate) const TARGETS: [Target; 9] = [
    target("x86_64-apple-darwin", "darwin-x64", "macosx_10_12_x86_64"),
    target("aarch64-apple-darwin", "darwin-arm64", "macosx_11_0_arm64"),
    target("i686-pc-windows-msvc", "win32-ia32", "win32"),
    target("x86_64-pc-windows-msvc", "win32-x64", "win_amd64"),
    target("aarch64-pc-windows-msvc", "win32-arm64", "win_arm64"),
    glibc("x86_64-unknown-linux-gnu", "linux-x64", "x86_64", "amd64"),
    glibc("aarch64-unknown-linux-gnu", "linux-arm64", "aarch64", "arm64"),
    Target {
        triple: "x86_64-unknown-linux-musl",
        npm: "linux-x64-musl",
        npm_libc: Some("musl"),
        wheel: "musllinux_1_2_x86_64",
        debian: None,
    },
    glibc("armv7-unknown-linux-gnueabihf", "linux-arm", "armv7l", "armhf"),
];

impl Target {
    /// The system of this name.
    pub(super) fn find(triple: &str) -> Result<&'static Self, String> {
        let found = TARGETS.iter().find(|target| target.triple == triple);
        found.ok_or_else(|| {
            let known: Vec<&str> = TARGETS.iter().map(|target| target.triple).collect();
            format!("there is no target {triple:?}; the targets are {}", known.join(", "))
        })
    }

    pub(super) fn is_windows(&self) -> bool {
        self.npm.starts_with("win32")
    }

    pub(super) fn is_linux(&self) -> bool {
        self.npm.starts_with("linux")
    }

    pub(super) fn uses_glibc(&self) -> bool {
        self.npm_libc == Some("glibc")
    }

    /// What the program is called there.
    pub(super) fn program(&self) -> &'static str {
        if self.is_windows() { "bough.exe" } else { "bough" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_manifest_names_the_same_targets() {
        let file = crate::workspace_root().join("packaging/iii.worker.yaml");
        let text = std::fs::read_to_string(file).unwrap();
        let listed: Vec<&str> = text
            .lines()
            .skip_while(|line| *line != "supported_targets:")
            .skip(1)
            .map_while(|line| line.strip_prefix("  - "))
            .collect();
        assert_eq!(listed, TARGETS.map(|target| target.triple));
    }

    #[test]
    fn the_release_workflow_builds_them_all() {
        let file = crate::workspace_root().join(".github/workflows/release.yml");
        let text = std::fs::read_to_string(file).unwrap();
        for target in &TARGETS {
            let row = format!("target: {}", target.triple);
            assert!(text.contains(&row), "{} is not built", target.triple);
        }
    }

    #[test]
    fn a_target_that_is_not_known_is_refused_with_those_that_are() {
        let problem = Target::find("riscv64gc-unknown-linux-gnu").unwrap_err();
        assert!(problem.contains("aarch64-apple-darwin"), "{problem}");
    }
}
