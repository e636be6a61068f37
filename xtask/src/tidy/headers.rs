//! Every crate opens with what it is for and what it must not know.

use super::Finding;
use super::tree::{TextFile, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().filter(|file| is_crate_root(tree, file)).flat_map(check_header).collect()
}

/// `lib.rs`, or `main.rs` of a crate that is a program only.
fn is_crate_root(tree: &Tree, file: &TextFile) -> bool {
    let Some(owner) = file.crate_name() else {
        return false;
    };
    let folder = if owner == "xtask" { owner.to_owned() } else { format!("crates/{owner}") };
    let library = format!("{folder}/src/lib.rs");
    let program = format!("{folder}/src/main.rs");
    file.path == library || (file.path == program && !tree.holds(&library))
}

/// Building the examples of a crate's documentation reads the whole crate again, so crates without any say so in their
/// manifest. Then one that is written later would never run.
pub(super) fn check_doctests(tree: &Tree) -> Vec<Finding> {
    let is_left_out = |file: &TextFile| {
        let owner = file.crate_name().unwrap_or_default();
        let manifest = tree.get(&format!("crates/{owner}/Cargo.toml"));
        manifest.is_some_and(|manifest| manifest.text.contains("doctest = false"))
    };
    let in_crates = tree.rust().filter(|file| !file.is_test() && is_left_out(file));
    let with_example = in_crates.filter_map(|file| Some((file, first_example(&file.text)?)));
    let text = "this example never runs: take `doctest = false` out of the crate's manifest";
    with_example.map(|(file, line)| Finding::at("doctest", &file.path, line, text)).collect()
}

/// The line of the first block in the documentation that rustdoc would run.
fn first_example(text: &str) -> Option<usize> {
    const RUN: [&str; 5] = ["", "rust", "no_run", "should_panic", "compile_fail"];
    let mut is_open = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim);
        let Some(language) = doc.and_then(|doc| doc.strip_prefix("```")) else { continue };
        is_open = !is_open;
        if is_open && RUN.contains(&language.split(',').next().unwrap_or_default()) {
            return Some(number);
        }
    }
    None
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

    fn check_example(manifest: &str, text: &str, lines: &[usize]) {
        let tree = planted(&[("crates/log/Cargo.toml", manifest), ("crates/log/src/lib.rs", text)]);
        let found: Vec<usize> = check_doctests(&tree).iter().map(|finding| finding.line).collect();
        assert_eq!(found, lines, "{manifest}: {text}");
    }

    #[test]
    fn an_example_that_never_runs_is_found() {
        const OUT: &str = "[lib]\ndoctest = false\n";
        check_example(OUT, "//! Bytes.\n//! ```\n//! go();\n//! ```\n", &[2]);
        check_example(OUT, "/// ```text\n/// a\n/// ```\n/// ```no_run\n/// ```\n", &[4]);
        check_example(OUT, "/// ```json\n/// {}\n/// ```\n", &[]);
        check_example("[lib]\n", "/// ```\n/// go();\n/// ```\n", &[]);
    }
}
