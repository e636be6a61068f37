//! The crates of the workspace, which of them may name which, and what none of them may call.
//!
//! `CRATES` is the plan that `ARCHITECTURE.md` draws; a check keeps the drawing equal to it.

use super::Finding;
use super::metadata::{Dependency, Metadata, Package};
use super::tree::{TextFile, Tree};

/// One crate and the crates it may depend on.
struct CrateRule {
    folder: &'static str,
    package: &'static str,
    /// Folders of the crates that it may name. Tests may name any.
    may_use: &'static [&'static str],
}

const fn rule(
    folder: &'static str,
    package: &'static str,
    may_use: &'static [&'static str],
) -> CrateRule {
    CrateRule { folder, package, may_use }
}

const CRATES: [CrateRule; 15] = [
    rule("platform", "bough-platform", &[]),
    rule("record", "bough-record", &[]),
    rule("log", "bough-log", &["platform", "record"]),
    rule("session", "bough-session", &["record"]),
    rule("store", "bough-store", &["platform", "record", "log", "session"]),
    rule("search", "bough-search", &["platform", "record", "session"]),
    rule("recorder", "bough-recorder", &["platform", "session"]),
    rule("service", "bough-service", &["platform", "session", "store", "search", "recorder"]),
    rule("migrate", "bough-migrate", &["platform", "record", "session", "store"]),
    rule("mcp", "bough-mcp", &["service"]),
    rule("server", "bough-server", &["platform", "session", "store", "search", "service", "mcp"]),
    rule("worker", "bough-worker", &["platform", "session", "store", "service"]),
    rule(
        "boughdb",
        "boughdb",
        &["platform", "session", "store", "search", "recorder", "service", "migrate"],
    ),
    rule(
        "cli",
        "bough",
        &[
            "platform", "session", "store", "search", "recorder", "service", "migrate", "mcp",
            "server", "worker", "boughdb",
        ],
    ),
    rule("testkit", "bough-testkit", &["platform", "log", "session", "store"]),
];

/// Programs around the product: they may name any crate, and no crate may name them.
const TOOLS: [&str; 2] = ["bough-bench", "xtask"];

/// Whether a package stands outside the product.
pub(super) fn is_tool(package: &str) -> bool {
    TOOLS.contains(&package)
}

/// Only tests and tools may name this one.
pub(super) const TESTS_ONLY: &str = "bough-testkit";

/// Crates from outside that belong to some crates only: how "must not know HTTP" is checked.
const OUTSIDE: [(&str, &[&str]); 11] = [
    ("libc", &["platform"]),
    ("getrandom", &["platform"]),
    ("rusqlite", &["store", "search", "migrate"]),
    ("axum", &["server"]),
    ("hyper", &["server"]),
    ("tower", &["server"]),
    ("tower-http", &["server"]),
    ("iii-sdk", &["worker"]),
    ("clap", &["cli"]),
    ("ratatui", &["cli"]),
    (
        "tokio",
        &[
            "recorder", "store", "search", "service", "migrate", "mcp", "server", "worker", "cli",
            "boughdb",
        ],
    ),
];

/// Calls that belong to `platform`: a second net under clippy's, which `#[expect]` could open.
const DOORS: [(&str, &str); 11] = [
    ("std::fs", "bough_platform::Disk"),
    ("tokio::fs", "bough_platform::Disk"),
    ("Instant::now", "bough_platform::Clock"),
    ("SystemTime::now", "bough_platform::Clock"),
    ("Utc::now", "bough_platform::Clock"),
    ("Local::now", "bough_platform::Clock"),
    ("thread::sleep", "bough_platform::Clock"),
    ("getrandom", "bough_platform::Entropy"),
    ("rand::", "bough_platform::Entropy"),
    ("Uuid::new_v4", "bough_platform::Entropy"),
    ("Uuid::now_v7", "bough_platform::Clock and Entropy"),
];

/// Rooms that stand outside the doors: the door itself, and programs that test and measure.
const OUTSIDE_THE_DOORS: [&str; 4] = ["platform", "testkit", "bench", "xtask"];

/// The arrows between crates point one way.
pub(super) fn check(metadata: &Metadata) -> Vec<Finding> {
    metadata.members().filter(|package| !is_tool(&package.name)).flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Finding> {
    let Some(owner) = CRATES.iter().find(|owner| owner.package == package.name) else {
        let text = "this crate is not in the plan: give it a row in xtask/src/tidy/crates.rs";
        return vec![Finding::about("crates", &package.name, text)];
    };
    package
        .dependencies
        .iter()
        .filter(|dependency| !dependency.is_dev())
        .filter_map(|dependency| refused(owner, dependency))
        .map(|text| Finding::about("crates", &package.name, text))
        .collect()
}

/// Why a crate may not have a dependency, if it may not.
fn refused(owner: &CrateRule, dependency: &Dependency) -> Option<String> {
    let name = dependency.name.as_str();
    if name == TESTS_ONLY {
        return Some(format!("{name} is for tests: make it a dev-dependency"));
    }
    if is_tool(name) {
        return Some(format!("{name} is a tool: no crate may name it"));
    }
    if let Some(other) = CRATES.iter().find(|other| other.package == name) {
        let allowed = owner.may_use.contains(&other.folder);
        return (!allowed).then(|| format!("{} must not know {}", owner.folder, other.folder));
    }
    let (_, crates) = OUTSIDE.iter().find(|(outside, _)| *outside == name)?;
    (!crates.contains(&owner.folder))
        .then(|| format!("{} must not know {name}: only {crates:?} may", owner.folder))
}

/// Disk, clock and randomness are reached through their door.
pub(super) fn check_doors(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|file| file.crate_name().is_some_and(|owner| !OUTSIDE_THE_DOORS.contains(&owner)))
        .filter(|file| !file.is_test())
        .flat_map(doors_forced)
        .collect()
}

fn doors_forced(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.code_lines() {
        for (call, door) in DOORS {
            if names_call(&line, call) {
                let text = format!("{call} outside platform: use {door}");
                findings.push(Finding::at("doors", &file.path, number, text));
            }
        }
    }
    findings
}

/// Whether a line has the call, not merely a longer word that ends like it.
fn names_call(line: &str, call: &str) -> bool {
    line.match_indices(call).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
    })
}

/// The table in `ARCHITECTURE.md` says what `CRATES` says: a row starts with the crate and the crates that
/// it may use.
pub(super) fn check_drawing(tree: &Tree) -> Vec<Finding> {
    const PAGE: &str = "ARCHITECTURE.md";
    let Some(page) = tree.get(PAGE) else {
        return vec![Finding::about("drawing", PAGE, "the drawing of the crates is missing")];
    };
    let mut findings = Vec::new();
    for owner in &CRATES {
        let begins = format!("| `{}` | {} |", owner.folder, drawn(owner.may_use));
        if !page.text.lines().any(|line| line.starts_with(&begins)) {
            let text = format!("the table of crates should have the row: {begins} ...");
            findings.push(Finding::about("drawing", PAGE, text));
        }
    }
    findings
}

fn drawn(may_use: &[&str]) -> String {
    if may_use.is_empty() { "none".to_owned() } else { may_use.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::super::tree::planted;
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependencies = dependencies.iter().map(|(name, kind)| Dependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
        });
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            license: None,
            dependencies: dependencies.collect(),
        }
    }

    fn check_one(name: &str, dependency: &str, kind: Option<&str>, expected: &str) {
        let findings = check_package(&package(name, &[(dependency, kind)]));
        let texts: Vec<&str> = findings.iter().map(|finding| finding.text.as_str()).collect();
        if expected.is_empty() {
            assert!(texts.is_empty(), "{name} -> {dependency}: {texts:?}");
        } else {
            assert!(texts.concat().contains(expected), "{name} -> {dependency}: {texts:?}");
        }
    }

    #[test]
    fn an_arrow_against_the_plan_is_found() {
        check_one("bough-log", "bough-session", None, "log must not know session");
        check_one("bough-platform", "bough-log", None, "platform must not know log");
        check_one("bough", "bough-log", None, "cli must not know log");
        check_one("bough-store", "bough-log", None, "");
        check_one("bough-store", "serde", None, "");
    }

    #[test]
    fn the_testkit_is_for_tests() {
        check_one("bough-log", "bough-testkit", None, "dev-dependency");
        check_one("bough-log", "bough-testkit", Some("dev"), "");
    }

    #[test]
    fn crates_from_outside_stay_in_their_room() {
        check_one("bough-service", "axum", None, "service must not know axum");
        check_one("bough-log", "tokio", None, "log must not know tokio");
        check_one("bough-server", "axum", None, "");
        check_one("bough-store", "bough-bench", None, "tool");
    }

    #[test]
    fn a_crate_outside_the_plan_is_found() {
        check_one("bough-shed", "serde", None, "not in the plan");
    }

    #[test]
    fn the_plan_has_no_cycle() {
        let place = |folder: &str| CRATES.iter().position(|owner| owner.folder == folder);
        for owner in &CRATES {
            for used in owner.may_use {
                assert!(place(used) < place(owner.folder), "{used} comes after {}", owner.folder);
            }
        }
    }

    fn check_door(path: &str, text: &str, lines: &[usize]) {
        let findings = check_doors(&planted(&[(path, text)]));
        let found: Vec<usize> = findings.iter().map(|finding| finding.line).collect();
        assert_eq!(found, lines, "{path}: {text}");
    }

    #[test]
    fn a_forced_door_is_found_where_it_is() {
        check_door("crates/log/src/a.rs", "\nuse std::fs::File;\n", &[2]);
        check_door("crates/cli/src/a.rs", "let t = Instant::now();", &[1]);
        check_door("crates/store/src/a.rs", "let x: u8 = rand::random();", &[1]);
    }

    #[test]
    fn words_tests_and_the_door_itself_are_left_alone() {
        check_door("crates/log/src/a.rs", "// std::fs is banned\nlet a = \"std::fs\";", &[]);
        check_door("crates/log/src/a.rs", "let b = operand::new();", &[]);
        check_door("crates/log/src/a.rs", "#[cfg(test)]\nmod tests { use std::fs; }", &[]);
        check_door("crates/log/tests/a.rs", "use std::fs;", &[]);
        check_door("crates/platform/src/os.rs", "use std::fs;", &[]);
    }

    #[test]
    fn a_drawing_that_differs_from_the_plan_is_found() {
        let rows = |log: &str| {
            let all = CRATES.iter().map(|owner| match owner.folder {
                "log" => log.to_owned(),
                _ => format!("| `{}` | {} | text |\n", owner.folder, drawn(owner.may_use)),
            });
            all.collect::<String>()
        };
        let good = rows("| `log` | platform, record | bytes in order |\n");
        assert_eq!(check_drawing(&planted(&[("ARCHITECTURE.md", &good)])), []);
        let bad = rows("| `log` | platform, session | bytes in order |\n");
        let findings = check_drawing(&planted(&[("ARCHITECTURE.md", &bad)]));
        assert_eq!(findings.len(), 1);
        assert_eq!(check_drawing(&planted(&[])).len(), 1);
    }
}
