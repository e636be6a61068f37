//! `cargo xtask tidy`: the rules that neither the compiler nor clippy knows, as checks.
//!
//! Every check is a function from what was read (the tree, the metadata) to findings, so that its tests
//! can plant a violation and see it found.

mod budget;
mod crates;
mod docs;
mod headers;
mod metadata;
mod rust_text;
mod sizes;
mod tree;
mod words;

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use crate::counts::Counts;
use metadata::Metadata;
use tree::Tree;

/// One broken rule at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Finding {
    rule: &'static str,
    /// A file of the tree, or the crate or document that the rule is about.
    place: String,
    /// Counted from one; 0 when the rule is about the whole place.
    line: usize,
    text: String,
}

impl Finding {
    fn at(rule: &'static str, place: &str, line: usize, text: impl Into<String>) -> Self {
        Self { rule, place: place.to_owned(), line, text: text.into() }
    }

    fn about(rule: &'static str, place: &str, text: impl Into<String>) -> Self {
        Self::at(rule, place, 0, text)
    }
}

#[derive(Serialize)]
struct Report {
    findings: Vec<Finding>,
    sizes: sizes::Sizes,
    dependencies: budget::Used,
}

/// Runs all checks and prints the answer.
pub(crate) fn run(root: &Path, json: bool) -> ExitCode {
    let report = match inspect(root) {
        Ok(report) => report,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            return ExitCode::FAILURE;
        }
    };
    if json {
        println!("{}", serde_json::json!(report));
    } else {
        print!("{}{}", report.sizes, report.dependencies);
        print_findings(&report.findings);
    }
    if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The same checks as a stage of `cargo xtask test`.
pub(crate) fn stage(root: &Path) -> Result<Counts, String> {
    let report = inspect(root)?;
    for finding in &report.findings {
        eprintln!("      {}", line_of(finding));
    }
    Ok(if report.findings.is_empty() { Counts::ONE_PASSED } else { Counts::ONE_FAILED })
}

fn inspect(root: &Path) -> Result<Report, String> {
    let tree = Tree::read(root)?;
    let metadata = Metadata::read(root)?;
    let mut findings = Vec::new();
    findings.extend(crates::check(&metadata));
    findings.extend(crates::check_drawing(&tree));
    findings.extend(crates::check_doors(&tree));
    findings.extend(words::check(&tree, root));
    findings.extend(headers::check(&tree));
    findings.extend(headers::check_doctests(&tree));
    findings.extend(docs::check(&tree));
    findings.extend(docs::check_named_tests(&tree));
    findings.extend(budget::check(&metadata));
    findings.sort();
    Ok(Report { findings, sizes: sizes::measure(&tree), dependencies: budget::used(&metadata) })
}

fn print_findings(findings: &[Finding]) {
    for finding in findings {
        println!("{}", line_of(finding));
    }
    println!("tidy: {} findings", findings.len());
}

fn line_of(finding: &Finding) -> String {
    let Finding { rule, place, line, text } = finding;
    if *line == 0 {
        format!("{place}: {text} [{rule}]")
    } else {
        format!("{place}:{line}: {text} [{rule}]")
    }
}
