//! Every crate opens with what it is for and what it must not know.

use super::Finding;
use super::tree::{TextFile, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().filter(|file| is_crate_root(tree, file)).flat_map(check_header).collect()
}

/// `lib.rs`, or `main.rs` of a crate that is a program only.
fn is_crate_root(tree: &Tree, file: &TextFile) -> bool {
    let Some(room) = file.room() else {
        return false;
    };
    let folder = if room == "xtask" { room.to_owned() } else { format!("crates/{room}") };
    let library = format!("{folder}/src/lib.rs");
    let program = format!("{folder}/src/main.rs");
    file.path == library || (file.path == program && !tree.holds(&library))
}

fn check_header(file: &TextFile) -> Vec<Finding> {
    let header: Vec<&str> = file.text.lines().take_while(|line| line.starts_with("//!")).collect();
    let mut missing = Vec::new();
    let purpose = header.first().and_then(|line| line.strip_prefix("//! "));
    if !purpose.is_some_and(|text| text.starts_with(|c: char| c.is_alphabetic() || c == '`')) {
        missing.push("the first line says what the crate is for");
    }
    if !header.iter().any(|line| line.trim() == "//! Invariants:") {
        missing.push("the header has a line 'Invariants:' and what the crate must not know");
    }
    let finding = |text| Finding::at("header", &file.path, 1, text);
    missing.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::planted;
    use super::*;

    fn check_root(path: &str, text: &str, findings: usize) {
        assert_eq!(check(&planted(&[(path, text)])).len(), findings, "{path}: {text}");
    }

    #[test]
    fn a_crate_says_its_purpose_and_its_invariants() {
        check_root("crates/log/src/lib.rs", "//! Bytes.\n//!\n//! Invariants:\n//! - x\n", 0);
        check_root("crates/log/src/lib.rs", "//! Bytes.\nmod a;\n", 1);
        check_root("crates/log/src/lib.rs", "mod a;\n//! Invariants:\n", 2);
        check_root("crates/cli/src/main.rs", "fn main() {}", 2);
        check_root("crates/log/src/other.rs", "mod a;", 0);
    }

    #[test]
    fn a_program_beside_a_library_needs_no_header() {
        let tree = planted(&[
            ("crates/cli/src/lib.rs", "//! Commands.\n//! Invariants:\n"),
            ("crates/cli/src/main.rs", "fn main() {}"),
        ]);
        assert_eq!(check(&tree), []);
    }
}
