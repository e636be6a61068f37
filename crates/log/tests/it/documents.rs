//! `docs/RECOVERY.md` names a test for every row, and the tests exist.

use std::path::{Path, PathBuf};

/// `log/it/recovery::name` is `fn name` in `crates/log/tests/it/recovery.rs` or `crates/log/src/...`.
fn source_of(place: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (krate, module) = place.split_once('/')?;
    let below = |folder: &str| -> PathBuf { root.join(krate).join(folder).join(module) };
    ["tests", "src"]
        .iter()
        .find_map(|folder| std::fs::read_to_string(below(folder).with_extension("rs")).ok())
}

fn tests_in(row: &str) -> Vec<&str> {
    row.split('`').skip(1).step_by(2).filter(|code| code.contains("::")).collect()
}

#[test]
fn every_row_of_the_recovery_tables_names_tests_that_exist() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/RECOVERY.md");
    let text = std::fs::read_to_string(page).unwrap();
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let rows = rows.filter(|line| !line.starts_with("|---") && !line.starts_with("| found"));
    let mut named = 0;
    for row in rows {
        let tests = tests_in(row);
        assert!(!tests.is_empty(), "no test is named: {row}");
        for test in tests {
            let (place, name) = test.rsplit_once("::").unwrap();
            let source = source_of(place).unwrap_or_else(|| panic!("{place} is not a file"));
            assert!(source.contains(&format!("fn {name}(")), "{test} does not exist");
            named += 1;
        }
    }
    assert!(named >= 30, "only {named} tests are named");
}
