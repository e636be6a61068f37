//! Links between documents lead somewhere.

use super::Finding;
use super::tree::{TextFile, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files
        .iter()
        .filter(|file| file.path.ends_with(".md") && !file.is_sample())
        .flat_map(|page| check_page(tree, page))
        .collect()
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
    fn examples_are_not_links() {
        let tree = planted(&[("a.md", "```\n[x](gone.md)\n```\n")]);
        assert_eq!(check(&tree), []);
    }
}
