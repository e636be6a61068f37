//! Links between documents lead somewhere, and tests that tables name are there.

use super::Finding;
use super::tree::{TextFile, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files
        .iter()
        .filter(|file| file.path.ends_with(".md") && !file.is_sample())
        .flat_map(|page| check_page(tree, page))
        .collect()
}

/// Pages with a table whose rows name the tests that keep them true.
const PAGES_WITH_TESTS: [&str; 2] = ["docs/RECOVERY.md", "docs/COMPATIBILITY.md"];

pub(super) fn check_named_tests(tree: &Tree) -> Vec<Finding> {
    let pages = PAGES_WITH_TESTS.into_iter().filter_map(|path| tree.get(path));
    let mut findings = Vec::new();
    for page in pages {
        for (number, line) in prose(&page.text) {
            for name in named_tests(line).filter(|name| !has_function(tree, name)) {
                let text = format!("there is no test {name}");
                findings.push(Finding::at("tests", &page.path, number, text));
            }
        }
    }
    findings
}

/// The names of tests in a line: `place::of::the_test`, in marks of code.
fn named_tests(line: &str) -> impl Iterator<Item = &str> {
    let is_path = |text: &&str| {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_/:".contains(c);
        text.contains("::") && text.contains('/') && text.chars().all(is_word)
    };
    let code = line.split('`').skip(1).step_by(2).filter(is_path);
    code.filter_map(|path| path.rsplit_once("::").map(|(_, name)| name))
}

fn has_function(tree: &Tree, name: &str) -> bool {
    let wanted = format!("fn {name}(");
    tree.rust().any(|file| file.text.contains(&wanted))
}

fn check_page(tree: &Tree, page: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in prose(&page.text) {
        for target in targets(line) {
            if let Some(text) = broken(tree, page, target) {
                findings.push(Finding::at("links", &page.path, number, text));
            }
        }
    }
    findings
}

/// The lines of a page outside its fenced examples.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            !fenced && !fence
        })
        .collect()
}

/// The targets of `[text](target)` in a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

/// What is wrong with a link, if something is.
fn broken(tree: &Tree, page: &TextFile, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let resolved = if path.is_empty() { page.path.clone() } else { resolve(&page.path, path) };
    if !tree.holds(&resolved) {
        return Some(format!("the link leads to {resolved}, which does not exist"));
    }
    let headings = tree.get(&resolved).map_or("", |file| file.text.as_str());
    let found = anchor.is_empty() || headings.lines().any(|line| is_heading(line, anchor));
    (!found).then(|| format!("{resolved} has no heading for #{anchor}"))
}

/// A path relative to the folder of a page, with `..` and `.` worked out.
fn resolve(page: &str, path: &str) -> String {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            _ => names.push(name),
        }
    }
    names.join("/")
}

/// Whether a line is the heading that an anchor names: lower case, spaces as hyphens, marks left out.
fn is_heading(line: &str, anchor: &str) -> bool {
    let text = line.trim_start_matches('#');
    if text.len() == line.len() || !text.starts_with(' ') {
        return false;
    }
    let slug: String = text
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect();
    slug == anchor
}

#[cfg(test)]
mod tests {
    use super::super::tree::planted;
    use super::*;

    fn check_link(link: &str, expected: &str) {
        let page = format!("# Title\n\nsee [it]({link})\n");
        let tree = planted(&[
            ("docs/page.md", page.as_str()),
            ("docs/other.md", "# On `disk`, 1\n"),
            ("crates/log/src/lib.rs", ""),
        ]);
        let texts: String = check(&tree).into_iter().map(|finding| finding.text).collect();
        if expected.is_empty() {
            assert_eq!(texts, "", "{link}");
        } else {
            assert!(texts.contains(expected), "{link}: {texts}");
        }
    }

    #[test]
    fn links_that_hold() {
        for link in ["other.md", "../crates/log", "#title", "other.md#on-disk-1", "https://x.y/z"] {
            check_link(link, "");
        }
    }

    #[test]
    fn links_that_do_not() {
        check_link("gone.md", "docs/gone.md, which does not exist");
        check_link("../gone/", "gone, which does not exist");
        check_link("other.md#nowhere", "no heading");
        check_link("#nowhere", "no heading");
    }

    #[test]
    fn tests_that_a_table_names_are_there() {
        let tree = planted(&[
            (
                "docs/RECOVERY.md",
                "| x | `log/it/recovery::is_there` `session::get` `log/a::gone` |\n",
            ),
            ("crates/log/tests/it/recovery.rs", "#[test]\nfn is_there() {}\n"),
        ]);
        let texts: Vec<String> =
            check_named_tests(&tree).into_iter().map(|finding| finding.text).collect();
        assert_eq!(texts, ["there is no test gone"]);
    }

    #[test]
    fn examples_are_not_links() {
        let tree = planted(&[("a.md", "```\n[x](gone.md)\n```\n")]);
        assert_eq!(check(&tree), []);
    }
}
