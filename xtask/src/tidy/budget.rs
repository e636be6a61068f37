//! How much of other people's code we build on, and under which licences.

use std::fmt;

use serde::Serialize;

use super::Finding;
use super::crates;
use super::metadata::Metadata;

/// Packages from outside that the product may need; tests, tools and the engine's SDK left out.
const PRODUCT_MAX: usize = 250;

/// The same with the engine's SDK, whose own needs we cannot choose.
const WHOLE_MAX: usize = 280;

/// The client of another system, which attaching to it cannot do without.
const SDK: [&str; 1] = ["iii-sdk"];

/// Packages from outside that the innermost crates may need together.
const CORE_MAX: usize = 40;

const CORE: [&str; 2] = ["bough-log", "bough-session"];

/// Licences that ask for nothing but their notice.
const LICENCES: [&str; 13] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// What is used of the budget.
#[derive(Debug, Serialize)]
pub(super) struct Used {
    product: usize,
    whole: usize,
    core: usize,
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "dependencies: {} of {PRODUCT_MAX}, {} of {WHOLE_MAX} with the engine's SDK, \
             {} of {CORE_MAX} for log and session",
            self.product, self.whole, self.core
        )
    }
}

pub(super) fn used(metadata: &Metadata) -> Used {
    let shipped = shipped(metadata);
    Used {
        product: metadata.needed_by(&shipped, &SDK).len(),
        whole: metadata.needed_by(&shipped, &[]).len(),
        core: metadata.needed_by(&CORE, &[]).len(),
    }
}

pub(super) fn check(metadata: &Metadata) -> Vec<Finding> {
    let Used { product, whole, core } = used(metadata);
    let over = [
        ("the product", product, PRODUCT_MAX),
        ("the product with the engine's SDK", whole, WHOLE_MAX),
        ("log and session", core, CORE_MAX),
    ];
    let over = over.into_iter().filter(|(_, used, most)| used > most);
    let mut findings: Vec<Finding> = over
        .map(|(what, used, most)| {
            let text = format!("{what} needs {used} packages from outside, at most {most} may be");
            Finding::about("budget", "Cargo.lock", text)
        })
        .collect();
    findings.extend(check_licences(metadata));
    findings
}

fn shipped(metadata: &Metadata) -> Vec<&str> {
    metadata
        .members()
        .map(|package| package.name.as_str())
        .filter(|name| !crates::is_tool(name) && *name != crates::TESTS_ONLY)
        .collect()
}

fn check_licences(metadata: &Metadata) -> Vec<Finding> {
    let needed = metadata.needed_by(&shipped(metadata), &[]);
    metadata
        .packages
        .iter()
        .filter(|package| needed.contains(package.id.as_str()))
        .filter_map(|package| {
            let licence = package.license.as_deref().unwrap_or("none given");
            let text = format!("its licence ({licence}) is not one that we accept");
            (!is_accepted(licence)).then(|| Finding::about("licence", &package.name, text))
        })
        .collect()
}

/// Whether one of the offered licences can be taken. Brackets only ever group alternatives in practice,
/// so an `AND` of groups is read as: every group must offer an accepted one.
fn is_accepted(expression: &str) -> bool {
    let flat = expression.replace('/', " OR ");
    let groups = split_outside_brackets(&flat);
    groups.iter().all(|group| {
        let bare = group.trim().trim_matches(['(', ')']);
        bare.split(" OR ")
            .any(|offer| offer.split(" AND ").all(|one| LICENCES.contains(&one.trim())))
    })
}

/// Splits at the `AND`s that join bracketed groups: `(A OR B) AND C`. An `AND` inside an alternative
/// (`A OR B AND C`) binds tighter and stays.
fn split_outside_brackets(expression: &str) -> Vec<&str> {
    if expression.contains('(') { expression.split(" AND ").collect() } else { vec![expression] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_read_as_offers() {
        for good in [
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "GPL-3.0 OR MIT",
            "Apache-2.0 AND ISC",
        ] {
            assert!(is_accepted(good), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND AGPL-3.0", "none given"] {
            assert!(!is_accepted(bad), "{bad}");
        }
    }

    /// A workspace of one shipped crate that needs `count` packages, and one that only tests need.
    fn workspace(count: usize, licence: &str) -> Metadata {
        let outside = |n: usize| serde_json::json!({"id": format!("o{n}"), "name": format!("o{n}"), "license": licence});
        let needs =
            |n: usize| serde_json::json!({"pkg": format!("o{n}"), "dep_kinds": [{"kind": null}]});
        let mut packages = vec![serde_json::json!({"id": "log", "name": "bough-log"})];
        packages.extend((0..=count).map(outside));
        let mut deps: Vec<_> = (0..count).map(needs).collect();
        deps.push(serde_json::json!({"pkg": format!("o{count}"), "dep_kinds": [{"kind": "dev"}]}));
        let value = serde_json::json!({
            "packages": packages,
            "workspace_members": ["log"],
            "resolve": {"nodes": [{"id": "log", "deps": deps}]},
        });
        serde_json::from_value(value).unwrap()
    }

    fn rules(metadata: &Metadata) -> Vec<&'static str> {
        check(metadata).iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn the_budget_is_a_limit() {
        assert_eq!(rules(&workspace(CORE_MAX, "MIT")), [""; 0]);
        assert_eq!(rules(&workspace(CORE_MAX + 1, "MIT")), ["budget"]);
        assert_eq!(rules(&workspace(PRODUCT_MAX + 1, "MIT")), ["budget", "budget"]);
    }

    #[test]
    fn what_only_the_sdk_needs_is_counted_apart() {
        let package =
            |id: &str, name: &str| serde_json::json!({"id": id, "name": name, "license": "MIT"});
        let edge = |id: &str| serde_json::json!({"pkg": id, "dep_kinds": [{"kind": null}]});
        let metadata = serde_json::from_value(serde_json::json!({
            "packages": [package("w", "bough-worker"), package("s", "iii-sdk"), package("d", "deep")],
            "workspace_members": ["w"],
            "resolve": {"nodes": [
                {"id": "w", "deps": [edge("s")]},
                {"id": "s", "deps": [edge("d")]},
            ]},
        }));
        let used = used(&metadata.unwrap());
        assert_eq!((used.product, used.whole), (0, 2));
    }

    #[test]
    fn a_licence_that_we_do_not_accept_is_found_and_tests_do_not_count() {
        assert_eq!(rules(&workspace(2, "GPL-3.0")), ["licence", "licence"]);
        assert_eq!(used(&workspace(2, "MIT")).whole, 2);
    }
}
